package server

import (
	"context"
	"errors"
	"net/http"
)

// errNoChanges is the answer of a server that others may reach without being asked who they are.
var errNoChanges = errors.New("IDs are released and claimed through this server only with " +
	"server.auth or server.tls.client_ca_file, or with server.listen on 127.0.0.1 and no " +
	"server.hosts")

// mayChange reports whether everybody who gets past protect may change claims: they have proved who
// they are, or are on this machine. With names for it, a proxy on this machine may speak for
// anybody.
func mayChange(o Options, local bool) bool {
	return o.Auth.Username != "" || o.TLS.ClientCAFile != "" || local && len(o.Hosts) == 0
}

// changed releases or claims an ID for kdedup id.
func (p *page) changed(change Change) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) { p.change(w, r, change) }
}

func (p *page) change(w http.ResponseWriter, r *http.Request, change Change) {
	refuse := func(status int, err error) {
		writeJSON(w, status, map[string]string{"error": err.Error()})
	}
	if !p.changes {
		refuse(http.StatusForbidden, errNoChanges)
		return
	}
	q, id, err := p.asked(w, r)
	if err != nil {
		refuse(http.StatusBadRequest, err)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), lookupTimeout)
	defer cancel()
	said, err := p.source.Change(ctx, change, q.Topic, id)
	if err != nil {
		refuse(http.StatusConflict, errors.New(p.clean(err.Error())))
		return
	}
	writeJSON(w, http.StatusOK, map[string]string{"said": said})
}
