package config

// Server is the HTTP server with the status page, /metrics, /healthz and /readyz. See
// docs/status-page.md.
type Server struct {
	// Address and port to listen on, `host:port`. An empty host listens on all interfaces; port 0
	// takes any free port. On an address that other machines reach, set `auth`, or
	// `tls.client_ca_file`: without them everybody there may read the page and look up IDs.
	Listen string `mapstructure:"listen"`
	// Names by which browsers and others may call the server: requests with another Host header are
	// refused. IP addresses, and `localhost` when `listen` is a loopback address, are always
	// allowed. Empty means these alone on a loopback address, which keeps foreign web pages out
	// (DNS rebinding), and any name elsewhere.
	Hosts []string `mapstructure:"hosts"`
	// Whether the page and the API look up message IDs in the store and, for those whom it knows,
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

// ServerAuth is HTTP basic authentication. The password crosses the network as it is: use it with
// TLS, here or in a proxy in front.
type ServerAuth struct {
	// Name of the one user; needs `password`. Empty means no authentication.
	Username string `mapstructure:"username"`
	// Password of `username`, at least 8 bytes. It is read at the start.
	Password Secret `mapstructure:"password"`
}

// ServerTLS encrypts the server's connections. The files are read again when they change; when the
// new ones are unusable the old ones stay in use and a warning is logged.
type ServerTLS struct {
	// PEM file with the server's certificate chain; needs `key_file`. Empty means no encryption.
	CertFile string `mapstructure:"cert_file"`
	// PEM file with the private key of `cert_file`, not encrypted.
	KeyFile string `mapstructure:"key_file"`
	// PEM file with authorities: everything but /healthz and /readyz then asks for a client
	// certificate that one of them signed, besides the password if `auth` is set. Empty means that
	// no certificate is asked for.
	ClientCAFile string `mapstructure:"client_ca_file"`
}
