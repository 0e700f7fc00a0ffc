package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestKeepersRules(t *testing.T) {
	file := filepath.Join(t.TempDir(), "some.pem")
	if err := os.WriteFile(file, []byte("pem"), 0o600); err != nil {
		t.Fatal(err)
	}
	secret := Secret(strings.Repeat("x", 32))
	files := KeepersTLS{CAFile: file, CertFile: file, KeyFile: file}
	shared := func(set func(*Keepers)) func(*Config) {
		return func(c *Config) {
			c.Store.Type = StoreKafka
			c.Store.Keepers.Keep = KeepShared
			set(&c.Store.Keepers)
		}
	}
	testRules(t, []string{"orders"}, []rule{
		{"loopback", shared(func(*Keepers) {}), ""},
		{"none", shared(func(k *Keepers) { k.Keep, k.Listen = KeepNone, "" }), ""},
		{"another word", shared(func(k *Keepers) { k.Keep = "some" }),
			`store.keepers.keep: must be all, shared, none or only, got "some"`},
		{"only", shared(func(k *Keepers) { k.Keep = KeepOnly }), ""},
		{"only, without encryption", shared(func(k *Keepers) {
			k.Keep, k.Listen = KeepOnly, "10.0.0.1:9481"
		}), "store.keepers.secret: is required, because listen, \"10.0.0.1:9481\", is not a " +
			"loopback address: whoever reached it could claim and release messages; set secret or " +
			"tls, or listen on 127.0.0.1"},
		{"only, everywhere, and where is not said", shared(func(k *Keepers) {
			k.Keep, k.Listen, k.Secret = KeepOnly, ":9481", secret
		}), "store.keepers.advertise: is required, because listen, \":9481\", does not name a host " +
			"that others reach; set it to the address of this process, such as ${POD_IP}:9481"},
		{"only, of a store without a log", func(c *Config) {
			c.Store.Type, c.Store.Keepers.Keep = StoreRedis, KeepOnly
			c.Store.Redis.Addresses = []string{"redis:6379"}
		}, "store.keepers.keep: cannot be only with this store: it has no claim log, of which " +
			"something could be kept; take store.type: kafka, or cassandra with layout: log"},
		{"three copies", shared(func(k *Keepers) { k.Copies = 3 }),
			"store.keepers.copies: must be at most 2, got 3"},
		{"without encryption", shared(func(k *Keepers) { k.Listen = "10.0.0.1:9481" }),
			"store.keepers.secret: is required, because listen, \"10.0.0.1:9481\", is not a " +
				"loopback address: whoever reached it could claim and release messages; set secret " +
				"or tls, or listen on 127.0.0.1"},
		{"with a secret", shared(func(k *Keepers) {
			k.Listen, k.Secret = "10.0.0.1:9481", secret
		}), ""},
		{"with files", shared(func(k *Keepers) { k.Listen, k.TLS = "10.0.0.1:9481", files }), ""},
		{"a short secret", shared(func(k *Keepers) { k.Secret = secret[1:] }),
			"store.keepers.secret: must be at least 32 bytes long, got 31; make one with: openssl rand -hex 32"},
		{"secret and files", shared(func(k *Keepers) { k.Secret, k.TLS = secret, files }),
			"store.keepers.secret: cannot be used together with store.keepers.tls; remove one of them"},
		{"no authority", shared(func(k *Keepers) {
			k.TLS = KeepersTLS{CertFile: file, KeyFile: file}
		}), "store.keepers.tls.ca_file: is required"},
		{"everywhere, and where is not said", shared(func(k *Keepers) {
			k.Listen, k.Secret = "0.0.0.0:9481", secret
		}), "store.keepers.advertise: is required, because listen, \"0.0.0.0:9481\", does not name a host that " +
			"others reach; set it to the address of this process, such as ${POD_IP}:9481"},
		{"everywhere, and where is said", shared(func(k *Keepers) {
			k.Listen, k.Secret, k.Advertise = ":9481", secret, "pod-0.kdedup:9481"
		}), ""},
		{"no port", shared(func(k *Keepers) { k.Advertise = "pod-0" }),
			`store.keepers.advertise: must be host:port, got "pod-0"`},
		{"no address", shared(func(k *Keepers) { k.Listen = "9481" }),
			`store.keepers.listen: must be host:port, got "9481"`},
	})
}
