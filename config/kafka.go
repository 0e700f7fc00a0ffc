package config

// Kafka is the cluster, or both clusters, and how to reach them.
type Kafka struct {
	// Required. Some brokers as `host:port`, or `host` for port 9092. Name two, so that a start
	// does not depend on one.
	Brokers []string `mapstructure:"brokers"`
	// Rack or availability zone of this process, as in `broker.rack`. The lanes then read from a
	// replica there, where the brokers have `replica.selector.class` set (KIP-392). Empty: from the
	// leaders.
	Rack string `mapstructure:"rack"`
	// Encryption of the connections to the brokers.
	TLS TLS `mapstructure:"tls"`
	// Authentication with the brokers.
	SASL SASL `mapstructure:"sasl"`
	// Another cluster for what the pipelines forward.
	Output OutputCluster `mapstructure:"output"`
}

// OutputCluster takes the clean topics, the duplicates topics and the dead-letter topics; the
// inputs stay on the cluster of `kafka.brokers`. With `delivery: exactly_once` the consumer group
// and the fence topic are on the output's cluster, with `at_least_once` on the input's. The clean
// topic cannot have the name of the input.
type OutputCluster struct {
	// Some brokers of the other cluster. Empty: all topics are on one cluster.
	Brokers []string `mapstructure:"brokers"`
	// Encryption of the connections to them. Nothing is taken from `kafka.tls`.
	TLS TLS `mapstructure:"tls"`
	// Authentication with them. Nothing is taken from `kafka.sasl`.
	SASL SASL `mapstructure:"sasl"`
}

// Apart reports whether there is another cluster for what the pipelines forward.
func (o OutputCluster) Apart() bool { return len(o.Brokers) > 0 }

// TLS encrypts connections, and with a certificate of its own authenticates the client. Nothing is
// taken from one section into another. New connections take changed files (but not those of
// `tracing.tls`); while these are unusable, kdedup goes on with the old ones.
type TLS struct {
	// Whether connections are encrypted. The other settings need it.
	Enabled bool `mapstructure:"enabled"`
	// PEM file with the authorities that may sign the server's certificate. Empty: the system's,
	// which are read once.
	CAFile string `mapstructure:"ca_file"`
	// PEM file with the client's certificate chain; needs `key_file`.
	CertFile string `mapstructure:"cert_file"`
	// PEM file with the private key of `cert_file`, not encrypted.
	KeyFile string `mapstructure:"key_file"`
	// The name that the server's certificate must carry. Empty: the host that was dialled.
	ServerName string `mapstructure:"server_name"`
}

// Ways to log in to the brokers.
const (
	SASLPlain       = "plain"
	SASLScram256    = "scram-sha-256"
	SASLScram512    = "scram-sha-512"
	SASLOAuthBearer = "oauthbearer"
	SASLAWS         = "aws-msk-iam"
)

// SASL authenticates with the brokers. Nothing is taken from one section into the other.
type SASL struct {
	// `plain`, `scram-sha-256`, `scram-sha-512`, `oauthbearer` or `aws-msk-iam`, also as Kafka
	// spells them (`SCRAM-SHA-512`); empty: no authentication. With `plain` and `oauthbearer` the
	// secret crosses the network as it is: enable TLS. `aws-msk-iam` is refused without.
	Mechanism string `mapstructure:"mechanism"`
	// Required with `plain` and `scram-sha-…`, refused otherwise.
	Username string `mapstructure:"username"`
	// Required with `plain` and `scram-sha-…`, refused otherwise.
	Password Secret `mapstructure:"password"`
	// Where the tokens of `oauthbearer` come from.
	OAuth OAuth `mapstructure:"oauth"`
	// Whose credentials `aws-msk-iam` takes.
	AWS AWS `mapstructure:"aws"`
}

// OAuth gets tokens by the client credentials grant. A token is renewed when a fifth of its time is
// left.
type OAuth struct {
	// Required with `oauthbearer`. The token endpoint, as an `https` URL; `http` only for a host on
	// the loopback. Proxies are taken from the environment (`HTTPS_PROXY`, `NO_PROXY`).
	TokenURL string `mapstructure:"token_url"`
	// Required with `oauthbearer`. The client's name at the token endpoint.
	ClientID string `mapstructure:"client_id"`
	// Required with `oauthbearer`.
	ClientSecret Secret `mapstructure:"client_secret"`
	// Scopes to ask for.
	Scopes []string `mapstructure:"scopes"`
	// The `audience` parameter that some endpoints want.
	Audience string `mapstructure:"audience"`
	// SASL extensions for the brokers, each as `name=value`. Confluent Cloud wants `logicalCluster`
	// and `identityPoolId`.
	Extensions []string `mapstructure:"extensions"`
	// PEM file with the authorities that may sign the endpoint's certificate, read for each token.
	// Empty: the system's.
	CAFile string `mapstructure:"ca_file"`
}

// AWS is the login to Amazon MSK by IAM, with the credentials of the AWS SDK's default chain. The
// region is that in the brokers' names; where they have none, `AWS_REGION` must be set in the
// environment.
type AWS struct {
	// Profile of the shared configuration files. Empty: `AWS_PROFILE`, or the default one.
	Profile string `mapstructure:"profile"`
	// ARN of a role to assume with those credentials. It needs a region in the environment or in
	// the profile.
	RoleARN string `mapstructure:"role_arn"`
}
