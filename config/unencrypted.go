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
	sasl := c.Kafka.SASL.Mechanism
	add("kafka.sasl", sasl == SASLPlain || sasl == SASLOAuthBearer, c.Kafka.TLS, c.Kafka.Brokers)
	switch s := c.Store; s.Type {
	case StoreCassandra:
		add("store.cassandra.password", s.Cassandra.Password != "", s.Cassandra.TLS,
			s.Cassandra.Hosts)
	case StoreRedis:
		add("store.redis.password", s.Redis.Password != "" || s.Redis.SentinelPassword != "",
			s.Redis.TLS, s.Redis.Addresses)
	}
	if r := c.SchemaRegistry; r.Password != "" || r.Token != "" {
		for _, text := range r.URLs {
			if u, err := url.Parse(text); err == nil && u.Scheme == "http" {
				add(registryPath, true, TLS{}, []string{u.Host})
				break
			}
		}
	}
	return paths
}

func leavesMachine(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		host = address
	}
	return !isLoopback(host)
}
