package config

import (
	"fmt"
	"net"
	"path/filepath"
	"regexp"
	"slices"
	"time"
)

var apiScopeName = regexp.MustCompile(`^[a-zA-Z0-9._-]{1,100}$`)

// minTokenBytes keeps tokens out that are guessed over the network.
const minTokenBytes = 16

func (a API) check(p *problems, store Store, topics []Topic) {
	const path = "api"
	host, port, err := net.SplitHostPort(a.Listen)
	if err != nil || host != "" && !isHost(host) || !isPort(port, 0) {
		p.add(path+".listen", "", "must be host:port, got %q", a.Listen)
	}
	within(p, path+".max_bytes", a.MaxBytes, 1<<10, 64<<20)
	within(p, path+".max_batch", a.MaxBatch, 1, 100_000)
	within(p, path+".max_requests", a.MaxRequests, 1, 100_000)
	within(p, path+".max_wait", a.MaxWait, 100*time.Millisecond, 10*time.Minute)
	a.TLS.check(p)
	a.Keys.check(p, store)
	for i := range a.Scopes {
		a.checkScope(p, i, store, topics)
	}
	for i := range a.Callers {
		a.checkCaller(p, i)
	}
	if err != nil || len(a.Scopes) == 0 || isLoopback(host) {
		return
	}
	if len(a.Callers) == 0 {
		p.add(path+".callers", "", "is required when api.listen is not a loopback address")
	}
	if a.TLS.CertFile == "" {
		p.add(path+".tls.cert_file", "", "is required when api.listen is not a loopback address")
	}
}

func (k APIKeys) check(p *problems, store Store) {
	const path = "api.keys"
	if k.Type == "" {
		return
	}
	oneOf(p, path+".type", k.Type, KeysInFiles, KeysInStore)
	switch {
	case k.Type == KeysInFiles && k.Path == "":
		p.add(path+".path", "", "is required with api.keys.type files")
	case k.Type == KeysInFiles && store.Type == StoreEmbedded &&
		filepath.Clean(k.Path) == filepath.Clean(store.Embedded.Path):
		p.add(path+".path", "", "must differ from store.embedded.path")
	case k.Type == KeysInStore && k.Path != "":
		p.add(path+".path", "", "has no meaning with api.keys.type store, leave it out")
	case k.Type == KeysInStore && (store.Type == StoreEmbedded || store.Type == StoreKafka):
		p.add(path+".type", "", "must be files with store.type %s, got store", store.Type)
	case k.Type == KeysInStore && !keysTable.MatchString(k.Table):
		p.add(path+".table", "", "must be a lower-case letter and then at most 47 of a-z, 0-9, "+
			"'_', got %q", k.Table)
	case k.Type == KeysInStore && k.Table == claimsTable(store):
		p.add(path+".table", "", "must differ from the table of the claims, got %q", k.Table)
	}
}

// keysTable is a name that every store takes without quotes.
var keysTable = regexp.MustCompile(`^[a-z][a-z0-9_]{0,47}$`)

func claimsTable(s Store) string {
	switch s.Type {
	case StoreCassandra:
		return s.Cassandra.Table
	case StorePostgres:
		return s.Postgres.Table
	}
	return ""
}

func (a API) checkScope(p *problems, i int, store Store, topics []Topic) {
	s, path := a.Scopes[i], fmt.Sprintf("api.scopes[%d]", i)
	if !apiScopeName.MatchString(s.Name) {
		p.add(path+".name", "", "must be 1 to 100 of letters, digits, '.', '_', '-', got %q",
			s.Name)
	}
	if !apiScopeName.MatchString(s.Group) {
		p.add(path+".group", "", "must be 1 to 100 of letters, digits, '.', '_', '-', got %q",
			s.Group)
	}
	if slices.ContainsFunc(a.Scopes[:i], func(o APIScope) bool { return o.Name == s.Name }) {
		p.add(path+".name", "", "must differ from the other scopes, got %q twice", s.Name)
	}
	within(p, path+".ttl", s.TTL, time.Second, longest)
	if s.TTL%time.Second != 0 {
		p.add(path+".ttl", "", "must be whole seconds, got %v", s.TTL)
	}
	within(p, path+".buckets", s.Buckets, 1, 65_536)
	of := func(t Topic) bool { return t.ScopeGroup == s.Group }
	if store.Logs() && !slices.ContainsFunc(topics, of) {
		p.add(path+".group", "name the consumer_group or scope_group of one of topics",
			"must be a group that has a claim log in store.type %s, got %q", store.Type, s.Group)
	}
	if slices.ContainsFunc(topics, func(t Topic) bool { return of(t) && t.Scope == s.Name }) {
		p.add(path+".name", "choose another one", "must not be the scope of one of topics in the "+
			"group %s: that makes its IDs in its own way", s.Group)
	}
	if store.Type == StoreCassandra {
		margin := time.Duration(0)
		if store.Logs() {
			margin = logMargin
		}
		checkCassandraTTL(p, path+".ttl", s.TTL, margin)
	}
}

func (a API) checkCaller(p *problems, i int) {
	c, path := a.Callers[i], fmt.Sprintf("api.callers[%d]", i)
	p.require(path+".name", c.Name)
	for j, o := range a.Callers[:i] {
		switch {
		case o.Name == c.Name:
			p.add(path+".name", "", "must differ from the other callers, got %q twice", c.Name)
		case o.Token == c.Token && o.Certificate == c.Certificate:
			p.add(path, "", "must differ from api.callers[%d] in token or certificate", j)
		}
	}
	switch {
	case c.Token == "" && c.Certificate == "":
		p.add(path+".token", "", "is required, or certificate")
	case c.Token != "" && len(c.Token) < minTokenBytes:
		p.add(path+".token", "", "must be at least %d bytes long", minTokenBytes)
	}
	if c.Certificate != "" && a.TLS.ClientCAFile == "" {
		p.add(path+".certificate", "", "needs api.tls.client_ca_file")
	}
	if len(c.Scopes) == 0 {
		p.add(path+".scopes", "", "is required, at least one name")
	}
	for j, name := range c.Scopes {
		if !slices.ContainsFunc(a.Scopes, func(s APIScope) bool { return s.Name == name }) {
			p.add(fmt.Sprintf("%s.scopes[%d]", path, j), "",
				"must be the name of one of api.scopes, got %q", name)
		}
	}
}

func (t APITLS) check(p *problems) {
	const path = "api.tls"
	for _, f := range []struct{ key, value string }{
		{"cert_file", t.CertFile}, {"key_file", t.KeyFile}, {"client_ca_file", t.ClientCAFile},
	} {
		p.readable(path+"."+f.key, f.value)
	}
	if t.KeyFile == "" && (t.CertFile != "" || t.ClientCAFile != "") {
		p.add(path+".key_file", "", "is required with cert_file and client_ca_file")
	}
	if t.CertFile == "" && (t.KeyFile != "" || t.ClientCAFile != "") {
		p.add(path+".cert_file", "", "is required with key_file and client_ca_file")
	}
}
