package config

// Server has the status page, /metrics, /healthz and /readyz. See docs/status-page.md.
type Server struct {
	// Where to listen, `host:port`. An empty host is all interfaces; port 0 takes any free port. On
	// an address that other machines reach, set `auth`, or `tls.client_ca_file`: without them
	// everybody there may read the page and look up IDs.
	Listen string `mapstructure:"listen"`
	// Host names by which the server may be called. IP addresses, and `localhost` when `listen` is
	// a loopback address, are always allowed. Empty: these alone on a loopback address, which keeps
	// foreign web pages out (DNS rebinding), and any name elsewhere.
	Hosts []string `mapstructure:"hosts"`
	// Whether the page and the API look up message IDs and, for those whom the server knows,
	// release and claim them, and show dead letters and send them again.
	Lookup bool `mapstructure:"lookup"`
	// Whether the Go profiler answers under /debug/pprof/. On an address that other machines reach
	// it needs `auth` or `tls.client_ca_file`.
	Pprof bool `mapstructure:"pprof"`
	// Name and password that everything but /healthz and /readyz asks for.
	Auth ServerAuth `mapstructure:"auth"`
	// Encryption, and on demand certificates of the clients.
	TLS ServerTLS `mapstructure:"tls"`
}

// ServerAuth is HTTP basic authentication for everything but /healthz and /readyz. The password
// crosses the network as it is: use TLS, here or in a proxy.
type ServerAuth struct {
	// Name of the one user; needs `password`. Empty: no authentication.
	Username string `mapstructure:"username"`
	// Password of `username`, at least 8 bytes.
	Password Secret `mapstructure:"password"`
}

// ServerTLS encrypts the server's connections. Changed files are read again; while they are
// unusable, the old ones stay in use.
type ServerTLS struct {
	// PEM file with the server's certificate chain; needs `key_file`. Empty: no encryption.
	CertFile string `mapstructure:"cert_file"`
	// PEM file with the private key of `cert_file`, not encrypted.
	KeyFile string `mapstructure:"key_file"`
	// PEM file with authorities: everything but /healthz and /readyz then needs a client
	// certificate that one of them signed, besides the password of `auth`.
	ClientCAFile string `mapstructure:"client_ca_file"`
}
