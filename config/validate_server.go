package config

import (
	"net"
	"strconv"
	"strings"
)

// minPasswordBytes keeps passwords out that are guessed over the network.
const minPasswordBytes = 8

func (s Server) check(p *problems) {
	host, port, err := net.SplitHostPort(s.Listen)
	if err != nil || host != "" && !isHost(host) || !isPort(port, 0) {
		p.add("server.listen", "", "must be host:port, got %q", s.Listen)
	}
	for i, name := range s.Hosts {
		if !isHost(name) || strings.Contains(name, ":") {
			p.add("server.hosts["+strconv.Itoa(i)+"]", "",
				"must be a host name without a port, got %q", name)
		}
	}
	s.Auth.check(p)
	s.TLS.check(p)
	if s.Pprof && s.Auth.Username == "" && s.TLS.ClientCAFile == "" && !isLoopback(host) {
		p.add("server.pprof", "", "needs server.auth or server.tls.client_ca_file when "+
			"server.listen is not a loopback address")
	}
}

// checkListeners refuses two listeners of a process at one address: the second would not start.
func (c Config) checkListeners(p *problems) {
	type listener struct{ path, address string }
	all := []listener{{"server.listen", c.Server.Listen}}
	if k := c.Store.Keepers; c.Store.Logs() && k.Shares() && k.Keeps() {
		all = append(all, listener{"store.keepers.listen", k.Listen})
	}
	if len(c.API.Scopes) > 0 {
		all = append(all, listener{"api.listen", c.API.Listen})
	}
	for i, l := range all {
		for _, other := range all[:i] {
			if meet(l.address, other.address) {
				p.add(l.path, "give each a port of its own",
					"must be another address than %s, got %q beside %q", other.path, l.address,
					other.address)
			}
		}
	}
}

// meet reports whether one process cannot listen at both.
func meet(a, b string) bool {
	host, port, err := net.SplitHostPort(a)
	otherHost, otherPort, otherErr := net.SplitHostPort(b)
	return err == nil && otherErr == nil && port == otherPort && port != "0" &&
		(host == otherHost || IsAnyAddress(host) || IsAnyAddress(otherHost))
}

// IsAnyAddress is true for what stands for all addresses of the host.
func IsAnyAddress(host string) bool {
	ip := net.ParseIP(host)
	return host == "" || ip != nil && ip.IsUnspecified()
}

// isLoopback is true only for what surely is: a name may mean any address.
func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

func (a ServerAuth) check(p *problems) {
	const path = "server.auth"
	switch {
	case a.Username == "" && a.Password != "":
		p.add(path+".username", "", "is required with password")
	case a.Username != "" && a.Password == "":
		p.add(path+".password", "", "is required with username")
	case a.Password != "" && len(a.Password) < minPasswordBytes:
		p.add(path+".password", "", "must be at least %d bytes long", minPasswordBytes)
	}
	if strings.Contains(a.Username, ":") {
		p.add(path+".username", "", "must not contain ':', which ends the name in HTTP")
	}
}

func (t ServerTLS) check(p *problems) {
	const path = "server.tls"
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
