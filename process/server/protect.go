package server

import (
	"crypto/sha256"
	"crypto/subtle"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"
)

// Auth is the name and password of HTTP basic authentication; an empty name means none.
type Auth struct{ Username, Password string }

// protect decides over every request before its path does. The order matters: the headers are also
// on refusals, and a foreign name is refused before credentials are looked at.
func protect(o Options, local bool, probes *prober, pages http.Handler) http.Handler {
	g := &guard{hosts: o.Hosts, local: local, auth: newDigests(o.Auth),
		certificate: o.TLS.ClientCAFile != "", log: o.Logger}
	open := http.NewServeMux() // probes have neither a password nor a certificate
	open.HandleFunc("GET /healthz", healthy)
	open.Handle("GET /readyz", readiness{probes, g.mayRead})
	open.Handle("/", g.authenticated(http.NewCrossOriginProtection().Handler(pages)))
	return withHeaders(g.named(open))
}

// Name is what the server calls itself in each answer. It tells no version.
const Name = "kdedup"

// withHeaders forbids browsers everything that the pages do not need.
func withHeaders(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Server", Name)
		h.Set("Content-Security-Policy",
			"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "+
				"connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("X-Frame-Options", "DENY")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Cache-Control", "no-store")
		next.ServeHTTP(w, r)
	})
}

type guard struct {
	hosts       []string
	local       bool
	auth        *digests // nil: no password
	certificate bool
	log         *slog.Logger
	warned      atomic.Int64 // when a wrong password was logged last, in nanoseconds
}

// warnEvery is the pause between two log lines about wrong passwords.
const warnEvery = 10 * time.Second

// noteWrong logs a wrong password, but not a missing one: browsers ask without it first.
func (g *guard) noteWrong(r *http.Request) {
	last, now := g.warned.Load(), time.Now().UnixNano()
	_, _, tried := r.BasicAuth()
	if tried && now-last > int64(warnEvery) && g.warned.CompareAndSwap(last, now) {
		g.log.Warn("wrong name or password for the status page", "from", r.RemoteAddr)
	}
}

// named refuses requests that call the server by a name that is not its own. A web page elsewhere
// can have its own name resolved to 127.0.0.1 (DNS rebinding), and would then be of the same
// origin; it cannot do so with an IP address. Only browsers can be misled, and they always send a
// Host.
func (g *guard) named(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !g.isOurs(r.Host) {
			http.Error(w, "this name is not one of server.hosts", http.StatusMisdirectedRequest)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func (g *guard) isOurs(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.TrimSuffix(strings.ToLower(host), ".")
	switch {
	case host == "" || net.ParseIP(strings.Trim(host, "[]")) != nil:
		return true
	case !g.local && len(g.hosts) == 0:
		return true
	case g.local && host == "localhost":
		return true
	}
	return slices.ContainsFunc(g.hosts, func(known string) bool {
		return strings.EqualFold(known, host)
	})
}

// authenticated asks for what the configuration wants: a certificate, a password, or both.
func (g *guard) authenticated(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case !g.hasCertificate(r):
			http.Error(w, "a client certificate is needed", http.StatusForbidden)
		case !g.hasPassword(r):
			g.noteWrong(r)
			w.Header().Set("WWW-Authenticate", `Basic realm="kdedup", charset="UTF-8"`)
			http.Error(w, "name and password are needed", http.StatusUnauthorized)
		default:
			next.ServeHTTP(w, r)
		}
	})
}

func (g *guard) mayRead(r *http.Request) bool { return g.hasCertificate(r) && g.hasPassword(r) }

func (g *guard) hasCertificate(r *http.Request) bool {
	return !g.certificate || r.TLS != nil && len(r.TLS.VerifiedChains) > 0
}

func (g *guard) hasPassword(r *http.Request) bool {
	if g.auth == nil {
		return true
	}
	username, password, ok := r.BasicAuth()
	return ok && g.auth.match(username, password)
}

// digests are compared in place of the texts, in a time that tells nothing about them, not even
// their lengths.
type digests struct{ username, password [sha256.Size]byte }

func newDigests(a Auth) *digests {
	if a.Username == "" {
		return nil
	}
	return &digests{sha256.Sum256([]byte(a.Username)), sha256.Sum256([]byte(a.Password))}
}

func (d *digests) match(username, password string) bool {
	u, p := sha256.Sum256([]byte(username)), sha256.Sum256([]byte(password))
	return subtle.ConstantTimeCompare(u[:], d.username[:])&subtle.ConstantTimeCompare(p[:],
		d.password[:]) == 1
}

// ownPagesOnly refuses what a page of another site asks for, even when that page could not read the
// answer: a profile costs time.
func ownPagesOnly(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.Header.Get("Sec-Fetch-Site") {
		case "", "none", "same-origin": // no browser, typed in, or from our page
			next.ServeHTTP(w, r)
		default:
			http.Error(w, "not for pages of other sites", http.StatusForbidden)
		}
	})
}

func isLoopback(a net.Addr) bool {
	tcp, ok := a.(*net.TCPAddr)
	return ok && tcp.IP.IsLoopback()
}

// warnIfOpen tells the operator what others can read.
func warnIfOpen(o Options, local bool) {
	switch {
	case local:
	case o.Auth.Username == "" && o.TLS.ClientCAFile == "":
		o.Logger.Warn("the status page is open to everybody who reaches its address",
			"listen", o.Listen,
			"hint", "set server.auth or server.tls.client_ca_file, or listen on 127.0.0.1")
	case o.TLS.CertFile == "":
		o.Logger.Warn("the password of the status page crosses the network unencrypted",
			"listen", o.Listen, "hint", "set server.tls, or have a proxy on this host do it")
	}
}

// minSecret keeps the cleaner from turning texts into riddles that give a short secret away.
const minSecret = 6

// Cleaner hides secrets in texts that others made, such as errors of libraries. None is known to
// hold one; the page must not depend on it.
func Cleaner(secrets []string) func(string) string {
	var pairs []string
	for _, secret := range secrets {
		if len(secret) >= minSecret {
			pairs = append(pairs, secret, "[hidden]")
		}
	}
	return strings.NewReplacer(pairs...).Replace
}
