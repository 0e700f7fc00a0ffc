package config

// Kafka is the cluster and how to reach it.
type Kafka struct {
	// Required. Some brokers as `host:port`, or `host` for port 9092. The others are found through
	// them; name at least two, so that a start does not depend on one broker.
	Brokers []string `mapstructure:"brokers"`
	// Encryption of the connections to the brokers.
	TLS TLS `mapstructure:"tls"`
	// Authentication with the brokers.
	SASL SASL `mapstructure:"sasl"`
}

// TLS encrypts connections, and with a certificate of its own authenticates the client.
type TLS struct {
	// Whether connections are encrypted. The other settings of this section have no effect without
	// it and are refused then.
	Enabled bool `mapstructure:"enabled"`
	// PEM file with the authorities that may sign the server's certificate. Empty means the
	// system's.
	CAFile string `mapstructure:"ca_file"`
	// PEM file with the client's certificate chain; needs `key_file`.
	CertFile string `mapstructure:"cert_file"`
	// PEM file with the private key of `cert_file`, not encrypted.
	KeyFile string `mapstructure:"key_file"`
	// The name that the server's certificate must carry. Empty means the host that was dialled.
	ServerName string `mapstructure:"server_name"`
}

// SASL authenticates with the brokers by name and password.
type SASL struct {
	// `plain`, `scram-sha-256` or `scram-sha-512`; empty means no authentication. With `plain` the
	// password crosses the network as it is: enable TLS.
	Mechanism string `mapstructure:"mechanism"`
	// Required with a mechanism, refused without.
	Username string `mapstructure:"username"`
	// Required with a mechanism, refused without.
	Password Secret `mapstructure:"password"`
}
