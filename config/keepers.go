package config

import (
	"net"
	"path/filepath"
)

// What a process keeps of a claim log.
const (
	KeepAll    = "all"
	KeepShared = "shared"
	KeepNone   = "none"
	KeepOnly   = "only"
)

// Keepers are the processes that share out the shards of a claim log among themselves, in Kafka or
// in Cassandra. See `docs/claimlog.md#keepers`.
type Keepers struct {
	// What this process keeps of the claim log's index. `all`: all shards; it asks nobody, and
	// nobody asks it. `shared`: its part; it asks the others about the rest. `none`: nothing, and
	// no disk; another one must be `shared` or `only`. `only`: its part, and no pipelines and no
	// API.
	Keep string `mapstructure:"keep"`
	// How many processes keep each shard, 1 or 2, the same in all processes. With 2 nothing waits
	// when a process is lost.
	Copies int `mapstructure:"copies"`
	// Where this process answers the others, `host:port`. Not used with `keep: none`. Off loopback
	// it needs `secret` or `tls`.
	Listen string `mapstructure:"listen"`
	// The `host:port` at which the others reach `listen`. Empty: `listen`, which must then name the
	// host.
	Advertise string `mapstructure:"advertise"`
	// What all processes know, and nobody else: at least 32 bytes, such as `openssl rand -hex 32`
	// makes. It encrypts the connections. Instead of `tls`.
	Secret Secret `mapstructure:"secret"`
	// Certificates on both sides of the connections. Instead of `secret`.
	TLS KeepersTLS `mapstructure:"tls"`
}

// KeepersTLS are the files for connections between keepers. Changed files are read again.
type KeepersTLS struct {
	// PEM file with the authorities that sign the certificates of these processes, and of no
	// others: whoever has one is answered.
	CAFile string `mapstructure:"ca_file"`
	// PEM file with this process's certificate chain, for both sides of a connection, with the host
	// of `advertise`.
	CertFile string `mapstructure:"cert_file"`
	// PEM file with the private key of `cert_file`, not encrypted.
	KeyFile string `mapstructure:"key_file"`
}

// Shares reports whether the process asks others.
func (k Keepers) Shares() bool { return k.Keep != KeepAll }

// Keeps reports whether the process is a keeper of some shards, and answers others for them.
func (k Keepers) Keeps() bool { return k.Keep == KeepShared || k.Keep == KeepOnly }

// leastKeepersSecret keeps secrets out that are guessed.
const leastKeepersSecret = 32

func (k Keepers) check(p *problems) {
	const path = "store.keepers"
	if !oneOf(p, path+".keep", k.Keep, KeepAll, KeepShared, KeepNone, KeepOnly) || !k.Shares() {
		return
	}
	within(p, path+".copies", k.Copies, 1, 2)
	if k.Secret != "" && len(k.Secret) < leastKeepersSecret {
		p.add(path+".secret", "make one with: openssl rand -hex 32",
			"must be at least %d bytes long, got %d", leastKeepersSecret, len(k.Secret))
	}
	k.TLS.check(p, path+".tls")
	if k.Secret != "" && k.TLS != (KeepersTLS{}) {
		p.add(path+".secret", "remove one of them", "cannot be used together with %s.tls", path)
	}
	if k.Keeps() {
		k.checkListen(p, path)
	}
}

func (k Keepers) checkListen(p *problems, path string) {
	host, port, err := net.SplitHostPort(k.Listen)
	if err != nil || host != "" && !isHost(host) || !isPort(port, 0) {
		p.add(path+".listen", "", "must be host:port, got %q", k.Listen)
		return
	}
	if k.Advertise == "" {
		if IsAnyAddress(host) {
			p.add(path+".advertise", "set it to the address of this process, such as "+
				"${POD_IP}:"+port, "is required, because listen, %q, does not name a host that "+
				"others reach", k.Listen)
		}
	} else if host, port, err := net.SplitHostPort(k.Advertise); err != nil || !isHost(host) ||
		!isPort(port, 1) {
		p.add(path+".advertise", "", "must be host:port, got %q", k.Advertise)
	}
	if !isLoopback(host) && k.Secret == "" && k.TLS == (KeepersTLS{}) {
		p.add(path+".secret", "set secret or tls, or listen on 127.0.0.1", "is required, because "+
			"listen, %q, is not a loopback address: whoever reached it could claim and release "+
			"messages", k.Listen)
	}
}

func (t KeepersTLS) check(p *problems, path string) {
	if t == (KeepersTLS{}) {
		return
	}
	for _, f := range []struct{ key, value string }{
		{"ca_file", t.CAFile}, {"cert_file", t.CertFile}, {"key_file", t.KeyFile},
	} {
		if p.require(path+"."+f.key, f.value) {
			p.readable(path+"."+f.key, filepath.Clean(f.value))
		}
	}
}
