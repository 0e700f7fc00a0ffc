package config

import "time"

// API answers programs in any language by gRPC, gRPC-Web and JSON over HTTP, on one port: `kdedup
// serve` alone, and with scopes `kdedup run` beside its pipelines. See `docs/api.md`.
type API struct {
	// Where the API answers, `host:port`; port 0 takes any free port. An address that other
	// machines reach needs `tls` and `callers`.
	Listen string `mapstructure:"listen"`
	// The namespaces of message IDs that callers name. `kdedup serve` needs one at least.
	Scopes []APIScope `mapstructure:"scopes"`
	// The keys that run something once, of `IdempotencyService`.
	Keys APIKeys `mapstructure:"keys"`
	// The programs that may call, and what. Empty: whoever reaches the loopback address may use
	// every scope.
	Callers []APICaller `mapstructure:"callers"`
	// Encryption, and authorities for certificates of the callers.
	TLS APITLS `mapstructure:"tls"`
	// The largest request, `1KiB` to `64MiB`.
	MaxBytes Bytes `mapstructure:"max_bytes"`
	// The most messages that one `Judge` takes, 1 to 100000.
	MaxBatch int `mapstructure:"max_batch"`
	// Most requests under way at once, 1 to 100000. More are refused, to be repeated. A request
	// that waits for the store holds up to `max_bytes`.
	MaxRequests int `mapstructure:"max_requests"`
	// How long a request may wait for the store, `100ms` to `10m`. The caller's deadline counts if
	// it comes before.
	MaxWait time.Duration `mapstructure:"max_wait"`
}

// APIScope is a namespace of message IDs.
type APIScope struct {
	// Required. What callers name: letters, digits, `.`, `_` and `-`, at most 100. Under another
	// name the claims are not found.
	Name string `mapstructure:"name"`
	// The group of scopes in the store, in which the name is unique. With a claim log it must be
	// the `consumer_group` or `scope_group` of an entry in `topics`.
	//
	// Default: `kdedup-api`.
	Group string `mapstructure:"group"`
	// How long a claim holds, whole seconds, at least `1s`: for longer than any copy is late.
	//
	// Default: `7d`.
	TTL time.Duration `mapstructure:"ttl"`
	// Storage partitions of the claims in Cassandra, 1 to 65536. It cannot be changed later.
	//
	// Default: `128`.
	Buckets int `mapstructure:"buckets"`
}

// APIKeys says where idempotency keys and their responses are kept. The namespaces are the scopes.
type APIKeys struct {
	// `files`: in `path`, for one process. `store`: where `store` says, for any number of
	// processes: Redis (without `wait_replicas`), PostgreSQL or Cassandra.
	//
	// Default: `files` with a `path`, else empty: there is no `IdempotencyService`.
	Type string `mapstructure:"type"`
	// Directory of the keys with `type: files`.
	Path string `mapstructure:"path"`
	// Table of the keys with `type: store`, in the schema or keyspace of `store`; on Redis, part of
	// the keys' names.
	Table string `mapstructure:"table"`
}

// APICaller is a program. With both a token and a certificate it must show both.
type APICaller struct {
	// Required. Its name, for logs.
	Name string `mapstructure:"name"`
	// What it sends as `Authorization: Bearer`, at least 16 bytes.
	Token Secret `mapstructure:"token"`
	// The common name of its certificate, or one of its DNS names or URIs; needs
	// `api.tls.client_ca_file`.
	Certificate string `mapstructure:"certificate"`
	// Required. The names of the scopes that it may use.
	Scopes []string `mapstructure:"scopes"`
}

// APITLS encrypts the API's connections. Changed files are read again; while they are unusable, the
// old ones stay in use.
type APITLS struct {
	// PEM file with the server's certificate chain; needs `key_file`. Empty: no encryption.
	CertFile string `mapstructure:"cert_file"`
	// PEM file with the private key of `cert_file`, not encrypted.
	KeyFile string `mapstructure:"key_file"`
	// PEM file with the authorities that sign the certificates of callers. Empty: no certificate is
	// asked for.
	ClientCAFile string `mapstructure:"client_ca_file"`
}

// Where idempotency keys are kept.
const (
	KeysInFiles = "files"
	KeysInStore = "store"
)

// The defaults of a scope of the API.
const (
	defaultAPIGroup   = "kdedup-api"
	defaultAPITTL     = 7 * 24 * time.Hour
	defaultAPIBuckets = 128
)

func defaultAPI() API {
	return API{Listen: "127.0.0.1:9481", Scopes: []APIScope{}, Callers: []APICaller{},
		Keys:     APIKeys{Table: "idempotency_keys"},
		MaxBytes: 4 << 20, MaxBatch: 10_000, MaxRequests: 1000, MaxWait: 30 * time.Second}
}

func (a API) derived() API {
	scopes := make([]APIScope, len(a.Scopes))
	for i, s := range a.Scopes {
		if s.Group == "" {
			s.Group = defaultAPIGroup
		}
		if s.TTL == 0 {
			s.TTL = defaultAPITTL
		}
		if s.Buckets == 0 {
			s.Buckets = defaultAPIBuckets
		}
		scopes[i] = s
	}
	a.Scopes = scopes
	if a.Keys.Type == "" && a.Keys.Path != "" {
		a.Keys.Type = KeysInFiles
	}
	return a
}
