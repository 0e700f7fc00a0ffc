package config

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestAPIRules(t *testing.T) {
	file := filepath.Join(t.TempDir(), "some.pem")
	if err := os.WriteFile(file, []byte("pem"), 0o600); err != nil {
		t.Fatal(err)
	}
	whole := APITLS{CertFile: file, KeyFile: file, ClientCAFile: file}
	const token = "sixteen bytes it"
	scopes := []APIScope{{Name: "a"}, {Name: "b"}}
	with := func(set func(*API)) func(*Config) {
		return func(c *Config) {
			c.Store.Type = StoreEmbedded
			c.API.Scopes = scopes
			set(&c.API)
		}
	}
	onRedis := func(c *Config) {
		c.Store.Type, c.Store.Redis.Addresses = StoreRedis, []string{"127.0.0.1:6379"}
		c.API.Scopes = scopes
	}
	caller := func(caller APICaller) func(*Config) {
		return with(func(a *API) {
			a.TLS, a.Callers = whole, []APICaller{{"first", token, "", []string{"a"}}, caller}
		})
	}
	testRules(t, []string{"orders"}, []rule{
		{"no scopes", func(c *Config) { c.API.Listen = ":9481" }, ""},
		{"scopes on a loopback address", with(func(*API) {}), ""},
		{"for everybody", with(func(a *API) { a.Listen = ":9481" }),
			"api.callers: is required when api.listen is not a loopback address\n" +
				"api.tls.cert_file: is required when api.listen is not a loopback address"},
		{"for callers without encryption", with(func(a *API) {
			a.Listen, a.Callers = "10.0.0.1:9481", []APICaller{{"first", token, "", []string{"a"}}}
		}), "api.tls.cert_file: is required when api.listen is not a loopback address"},
		{"for callers with encryption", with(func(a *API) {
			a.Listen, a.TLS = ":9481", whole
			a.Callers = []APICaller{{"first", token, "first.example", []string{"a", "b"}}}
		}), ""},
		{"no port", with(func(a *API) { a.Listen = "127.0.0.1" }),
			`api.listen: must be host:port, got "127.0.0.1"`},
		{"certificate alone", with(func(a *API) { a.TLS = APITLS{CertFile: file} }),
			"api.tls.key_file: is required with cert_file and client_ca_file"},
		{"limits", with(func(a *API) {
			a.MaxBytes, a.MaxBatch, a.MaxRequests, a.MaxWait = 1, 0, 0, time.Hour
		}), "api.max_bytes: must be at least 1KiB, got 1\n" +
			"api.max_batch: must be at least 1, got 0\n" +
			"api.max_requests: must be at least 1, got 0\n" +
			"api.max_wait: must be at most 10m0s, got 1h0m0s"},
		{"keys in the directory of the claims", with(func(a *API) { a.Keys.Path = "kdedup-data/" }),
			"api.keys.path: must differ from store.embedded.path"},
		{"keys in files without a path", with(func(a *API) { a.Keys.Type = KeysInFiles }),
			"api.keys.path: is required with api.keys.type files"},
		{"keys in a store of files", with(func(a *API) { a.Keys.Type = KeysInStore }),
			"api.keys.type: must be files with store.type embedded, got store"},
		{"keys in a store", func(c *Config) {
			onRedis(c)
			c.API.Keys.Type = KeysInStore
		}, ""},
		{"keys in a store and in files", func(c *Config) {
			onRedis(c)
			c.API.Keys = APIKeys{Type: KeysInStore, Path: "keys", Table: "k"}
		}, "api.keys.path: has no meaning with api.keys.type store, leave it out"},
		{"a strange table of keys", func(c *Config) {
			onRedis(c)
			c.API.Keys = APIKeys{Type: KeysInStore, Table: "Keys"}
		}, "api.keys.table: must be a lower-case letter and then at most 47 of a-z, 0-9, '_', " +
			`got "Keys"`},
		{"one name twice", with(func(a *API) { a.Scopes = []APIScope{{Name: "a"}, {Name: "a"}} }),
			`api.scopes[1].name: must differ from the other scopes, got "a" twice`},
		{"a strange name", with(func(a *API) { a.Scopes = []APIScope{{Name: "a/b"}} }),
			`api.scopes[0].name: must be 1 to 100 of letters, digits, '.', '_', '-', got "a/b"`},
		{"a part of a second", with(func(a *API) {
			a.Scopes = []APIScope{{Name: "a", TTL: 1500 * time.Millisecond}}
		}), "api.scopes[0].ttl: must be whole seconds, got 1.5s"},
		{"buckets", with(func(a *API) { a.Scopes = []APIScope{{Name: "a", Buckets: 100_000}} }),
			"api.scopes[0].buckets: must be at most 65536, got 100000"},
		{"the scope of a topic", with(func(a *API) {
			a.Scopes = []APIScope{{Name: "orders", Group: "orders-dedup"}}
		}), "api.scopes[0].name: must not be the scope of one of topics in the group " +
			"orders-dedup: that makes its IDs in its own way; choose another one"},
		{"a group without a log", func(c *Config) {
			c.Store.Type, c.API.Scopes = StoreKafka, scopes[:1]
		}, "api.scopes[0].group: must be a group that has a claim log in store.type kafka, got " +
			`"kdedup-api"; name the consumer_group or scope_group of one of topics`},
		{"a group with a log", func(c *Config) {
			c.Store.Type = StoreKafka
			c.API.Scopes = []APIScope{{Name: "a", Group: "orders-dedup"}}
		}, ""},
		{"a caller nobody can know", caller(APICaller{Name: "second", Scopes: []string{"a"}}),
			"api.callers[1].token: is required, or certificate"},
		{"a short token", caller(APICaller{"second", "short", "", []string{"a"}}),
			"api.callers[1].token: must be at least 16 bytes long"},
		{"two callers with one token", caller(APICaller{"second", token, "", []string{"a"}}),
			"api.callers[1]: must differ from api.callers[0] in token or certificate"},
		{"one name for two callers", caller(APICaller{"first", token + "2", "", []string{"a"}}),
			`api.callers[1].name: must differ from the other callers, got "first" twice`},
		{"no scopes for a caller", caller(APICaller{"second", token + "2", "", nil}),
			"api.callers[1].scopes: is required, at least one name"},
		{"an unknown scope", caller(APICaller{"second", token + "2", "", []string{"a", "c"}}),
			`api.callers[1].scopes[1]: must be the name of one of api.scopes, got "c"`},
		{"a certificate that nobody signs", with(func(a *API) {
			a.Callers = []APICaller{{"first", "", "first.example", []string{"a"}}}
		}), "api.callers[0].certificate: needs api.tls.client_ca_file"},
	})
}

func TestTheAPIAloneNeedsNeitherTopicsNorKafka(t *testing.T) {
	c := Default()
	c.Instance, c.Store.Type = "one", StoreEmbedded
	c.API.Scopes = []APIScope{{Name: "payments"}}
	if err := c.Validate(); err != nil {
		t.Error(err)
	}
	c.Store.Type = StoreKafka
	if err := c.Validate(); err == nil {
		t.Error("a store in Kafka needs no brokers")
	}
}

// A second listener at one address would not start, and with it the process.
func TestListenersOfAProcessHaveAddressesOfTheirOwn(t *testing.T) {
	beside := func(server, keepers, api string) func(*Config) {
		return func(c *Config) {
			c.Server.Listen = server
			c.Store.Keepers = Keepers{Keep: KeepShared, Copies: 1, Listen: keepers,
				Advertise: "kdedup-0:9999", Secret: "an example of 32 bytes and some more"}
			c.API.Scopes = []APIScope{{Name: "a", Group: "orders-dedup"}}
			c.API.Listen = api
		}
	}
	testRules(t, []string{"orders"}, []rule{
		{"the defaults", beside("127.0.0.1:9480", "127.0.0.1:9482", "127.0.0.1:9481"), ""},
		{"any port", beside("127.0.0.1:0", "127.0.0.1:0", "127.0.0.1:0"), ""},
		{"other hosts", beside("127.0.0.1:1", "127.0.0.2:1", "127.0.0.3:1"), ""},
		{"one address", beside("127.0.0.1:9480", "127.0.0.1:9482", "127.0.0.1:9482"),
			`api.listen: must be another address than store.keepers.listen, got ` +
				`"127.0.0.1:9482" beside "127.0.0.1:9482"; give each a port of its own`},
		{"all addresses", beside("127.0.0.1:9480", ":9480", "127.0.0.1:9481"),
			`store.keepers.listen: must be another address than server.listen, got ":9480" ` +
				`beside "127.0.0.1:9480"; give each a port of its own`},
		{"a store without keepers", func(c *Config) {
			beside("127.0.0.1:1", "127.0.0.1:1", "127.0.0.1:2")(c)
			c.Store.Type = StoreEmbedded
			c.API.Scopes[0].Group = ""
		}, ""},
	})
}
