package config

import (
	"net"
	"net/url"
	"slices"
)

// Unencrypted lists the settings whose secrets cross the network as they are, or nearly so, because
// the connections are not encrypted. Connections within the machine do not count, nor mechanisms
// that prove a password without sending it.
func (c Config) Unencrypted() (paths []string) {
	add := func(path string, sends bool, tls TLS, hosts []string) {
		if sends && !tls.Enabled && slices.ContainsFunc(hosts, leavesMachine) {
			paths = append(paths, path)
		}
	}
	k, o := c.Kafka, c.Kafka.Output
	add("kafka.sasl", k.SASL.sends(), k.TLS, k.Brokers)
	add("kafka.output.sasl", o.SASL.sends(), o.TLS, o.Brokers)
	switch s := c.Store; s.Type {
	case StoreCassandra:
		add("store.cassandra.password", s.Cassandra.Password != "", s.Cassandra.TLS,
			s.Cassandra.Hosts)
	case StoreRedis:
		add("store.redis.password", s.Redis.Password != "" || s.Redis.SentinelPassword != "",
			s.Redis.TLS, s.Redis.Addresses)
	}
	if r := c.SchemaRegistry; r.Password != "" || r.Token != "" || r.OAuth.TokenURL != "" {
		for _, text := range r.URLs {
			if u, err := url.Parse(text); err == nil && u.Scheme == "http" {
				add(registryPath, true, TLS{}, []string{u.Host})
				break
			}
		}
	}
	return paths
}

// sends reports whether the secret itself is sent, and not a proof of it.
func (s SASL) sends() bool { return s.Mechanism == SASLPlain || s.Mechanism == SASLOAuthBearer }

func leavesMachine(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		host = address
	}
	return !isLoopback(host)
}
