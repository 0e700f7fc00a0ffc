package server

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
)

// Limits of the look-up. An ID stands in the body of a POST, never in an address: addresses get
// into access logs, histories and referrers.
const (
	// of the request; IDs are stored up to 4 KiB, and hexadecimal doubles them
	lookupBytes   = 32 << 10
	lookupTimeout = 15 * time.Second
	lookupsAtOnce = 4
)

// question is what the form holds. It stays in the form with the answer.
type question struct {
	Topic string
	ID    string
	Hex   bool
}

var errBusy = errors.New("too many look-ups at a time; try again")

// asked reads the form. It looks at the body only.
func (p *page) asked(w http.ResponseWriter, r *http.Request) (q question, id []byte, err error) {
	r.Body = http.MaxBytesReader(w, r.Body, lookupBytes)
	if err := r.ParseForm(); err != nil {
		if errors.As(err, new(*http.MaxBytesError)) {
			return q, nil, fmt.Errorf("the request is longer than %d bytes", lookupBytes)
		}
		return q, nil, errors.New("the request is not a form")
	}
	form, topics := r.PostForm, p.topics()
	q = question{Topic: form.Get("topic"), ID: form.Get("id"), Hex: form.Get("hex") != ""}
	if q.Topic, err = chosen(q.Topic, topics); err != nil {
		return q, nil, err
	}
	id = []byte(q.ID)
	if q.Hex {
		if id, err = hex.DecodeString(strings.TrimSpace(q.ID)); err != nil {
			return q, nil, errors.New("the ID is not an even number of hexadecimal digits")
		}
	}
	if len(id) == 0 {
		return q, nil, errors.New("enter a message ID")
	}
	return q, id, nil
}

// chosen is the topic that is meant, which may be left out if there is only one.
func chosen(topic string, topics []string) (string, error) {
	switch {
	case len(topics) == 0:
		return topic, errors.New("no pipeline runs yet; try again")
	case topic == "" && len(topics) == 1:
		return topics[0], nil
	case !slices.Contains(topics, topic):
		return topic, fmt.Errorf("topic must be %s", strings.Join(topics, " or "))
	}
	return topic, nil
}

// answer looks an ID up, few at a time: each costs the store and a broker a read. The error is fit
// to be shown, and so is the status.
func (p *page) answer(ctx context.Context, q question, id []byte) (Finding, int, error) {
	select {
	case p.lookups <- struct{}{}:
		defer func() { <-p.lookups }()
	default:
		return Finding{}, http.StatusTooManyRequests, errBusy
	}
	ctx, cancel := context.WithTimeout(ctx, lookupTimeout)
	defer cancel()
	found, err := p.source.LookUp(ctx, q.Topic, id)
	if err != nil {
		return Finding{}, http.StatusServiceUnavailable, errors.New(p.clean(err.Error()))
	}
	return found, http.StatusOK, nil
}

// find reads the question of a request and answers it.
func (p *page) find(
	w http.ResponseWriter, r *http.Request,
) (q question, found Finding, status int, err error) {
	q, id, err := p.asked(w, r)
	if err != nil {
		return q, Finding{}, http.StatusBadRequest, err
	}
	found, status, err = p.answer(r.Context(), q, id)
	return q, found, status, err
}

// lookUp shows the page with the answer.
func (p *page) lookUp(w http.ResponseWriter, r *http.Request) {
	q, found, status, err := p.find(w, r)
	shown := lookupView{question: q, Asked: true, Rows: found.Rows}
	if err != nil {
		shown.Error = err.Error()
	}
	p.render(w, status, shown)
}

// lookUpJSON is the same for programs.
func (p *page) lookUpJSON(w http.ResponseWriter, r *http.Request) {
	_, found, status, err := p.find(w, r)
	if err != nil {
		writeJSON(w, status, map[string]string{"error": err.Error()})
		return
	}
	writeJSON(w, status, found.JSON)
}
