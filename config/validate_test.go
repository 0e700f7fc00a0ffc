package config

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// validTopic is an entry with nothing but what is required. The names follow from the input, so
// that entries with different inputs do not clash.
func validTopic(input string) Topic {
	t := DefaultTopic()
	t.Input, t.Output, t.ConsumerGroup = input, input+".clean", input+"-dedup"
	t.DeadLetterTopic = input + ".dlq"
	t.MessageID = MessageID{From: FromHeader, Name: "message-id"}
	return t
}

// valid is a configuration with nothing but what is required.
func valid(inputs ...string) Config {
	c := Default()
	c.Instance = "kdedup-0"
	c.Kafka.Brokers = []string{"localhost:9092"}
	for _, input := range inputs {
		c.Topics = append(c.Topics, validTopic(input))
	}
	return c
}

func withCassandra(c *Config) *Cassandra {
	c.Store.Type = StoreCassandra
	c.Store.Cassandra.Hosts = []string{"localhost:9042"}
	return &c.Store.Cassandra
}

func withPostgres(c *Config) *Postgres {
	c.Store.Type = StorePostgres
	c.Store.Postgres.Hosts = []string{"localhost:5432"}
	return &c.Store.Postgres
}

// rule breaks one thing of a valid configuration. An empty want means that it stays valid.
type rule struct {
	name     string
	breakOne func(c *Config)
	want     string
}

func testRules(t *testing.T, inputs []string, rules []rule) {
	t.Helper()
	for _, r := range rules {
		t.Run(r.name, func(t *testing.T) {
			c := valid(inputs...)
			r.breakOne(&c)
			got := ""
			if err := c.Validate(); err != nil {
				got = err.Error()
			}
			if diff := cmp.Diff(r.want, got); diff != "" {
				t.Errorf("Validate (-want +got):\n%s", diff)
			}
		})
	}
}

func TestDefaultsNeedOnlyWhatIsRequired(t *testing.T) {
	if err := valid("orders").Validate(); err != nil {
		t.Errorf("Validate: %v", err)
	}
	want := strings.Join([]string{
		"kafka.brokers: is required, at least one host:port",
		"topics: is required, at least one entry",
	}, "\n")
	if err := Default().Validate(); err == nil || err.Error() != want {
		t.Errorf("Default().Validate() = %v, want\n%s", err, want)
	}
}

func TestValidateReportsEverythingAtOnce(t *testing.T) {
	c := valid("orders")
	c.Log.Level = "loud"
	c.Topics[0].Lanes = 0
	c.Topics[0].TTL = 0
	err := c.Validate()
	want := `log.level: must be debug, info, warn or error, got "loud"
topics[0].lanes: must be at least 1, got 0
topics[0].ttl: must be at least 1s, got 0s`
	if err == nil || err.Error() != want {
		t.Fatalf("Validate() = %v, want\n%s", err, want)
	}
	var first *Error
	if !errors.As(err, &first) || first.Path != "log.level" {
		t.Errorf("errors.As gave %+v, want the *Error of log.level", first)
	}
}

func TestProcessRules(t *testing.T) {
	testRules(t, []string{"orders"}, []rule{
		{"instance with a space", func(c *Config) { c.Instance = "a b" },
			`instance: must be 1 to 200 of letters, digits, '.', '_', '-', got "a b"`},
		{"instance of 201 bytes", func(c *Config) { c.Instance = strings.Repeat("a", 201) },
			`instance: must be 1 to 200 of letters, digits, '.', '_', '-', got "` +
				strings.Repeat("a", 201) + `"`},
		{"shutdown_timeout too short", func(c *Config) {
			c.ShutdownTimeout = 999 * time.Millisecond
		},
			"shutdown_timeout: must be at least 1s, got 999ms"},
		{"listen without port", func(c *Config) { c.Server.Listen = "localhost" },
			`server.listen: must be host:port, got "localhost"`},
		{"listen with a port that does not exist", func(c *Config) { c.Server.Listen = ":65536" },
			`server.listen: must be host:port, got ":65536"`},
		{"listen on a URL", func(c *Config) { c.Server.Listen = "http://localhost:80" },
			`server.listen: must be host:port, got "http://localhost:80"`},
		{"listen on all interfaces, any port", func(c *Config) { c.Server.Listen = ":0" }, ""},
		{"listen on IPv6", func(c *Config) { c.Server.Listen = "[::1]:9480" }, ""},
		{"log level", func(c *Config) { c.Log.Level = "warning" },
			`log.level: must be debug, info, warn or error, got "warning"`},
		{"log format", func(c *Config) { c.Log.Format = "jsn" },
			`log.format: must be text or json, got "jsn"; did you mean json?`},
		{"no topics", func(c *Config) { c.Topics = nil },
			"topics: is required, at least one entry"},
	})
}

func TestKafkaRules(t *testing.T) {
	testRules(t, []string{"orders"}, []rule{
		{"no brokers", func(c *Config) { c.Kafka.Brokers = nil },
			"kafka.brokers: is required, at least one host:port"},
		{"broker with a scheme", func(c *Config) {
			c.Kafka.Brokers = []string{"a:9092", "kafka://b:9092"}
		},
			`kafka.brokers[1]: must be host:port or a host, got "kafka://b:9092"`},
		{"broker with port 0", func(c *Config) { c.Kafka.Brokers = []string{"a:0"} },
			`kafka.brokers[0]: must be host:port or a host, got "a:0"`},
		{"empty broker", func(c *Config) { c.Kafka.Brokers = []string{""} },
			`kafka.brokers[0]: must be host:port or a host, got ""`},
		{"brokers without ports", func(c *Config) {
			c.Kafka.Brokers = []string{"a", "::1", "[::1]:9092"}
		}, ""},
		{"SASL mechanism", func(c *Config) {
			c.Kafka.SASL = SASL{Mechanism: "scram-sha256", Username: "u", Password: "p"}
		},
			`kafka.sasl.mechanism: must be plain, scram-sha-256, scram-sha-512, oauthbearer or aws-msk-iam, got "scram-sha256"; did you mean scram-sha-256?`},
		{"SASL without username", func(c *Config) {
			c.Kafka.SASL = SASL{Mechanism: "plain", Password: "p"}
		},
			"kafka.sasl.username: is required with kafka.sasl.mechanism plain"},
		{"SASL without password", func(c *Config) {
			c.Kafka.SASL = SASL{Mechanism: "plain", Username: "u"}
		},
			"kafka.sasl.password: is required with kafka.sasl.mechanism plain"},
		{"username without SASL", func(c *Config) { c.Kafka.SASL = SASL{Username: "u"} },
			"kafka.sasl.username: has no effect without kafka.sasl.mechanism; set the mechanism"},
		{"password without SASL", func(c *Config) { c.Kafka.SASL = SASL{Password: "p"} },
			"kafka.sasl.password: has no effect without kafka.sasl.mechanism; set the mechanism"},
		{"SASL", func(c *Config) {
			c.Kafka.SASL = SASL{Mechanism: "scram-sha-512", Username: "u", Password: "p"}
		}, ""},
	})
}

func TestOutputClusterRules(t *testing.T) {
	with := func(set func(*OutputCluster)) func(*Config) {
		return func(c *Config) {
			c.Topics[0].Delivery = DeliveryAtLeastOnce
			c.Kafka.Output.Brokers = []string{"b:9092"}
			set(&c.Kafka.Output)
		}
	}
	testRules(t, []string{"orders"}, []rule{
		{"at_least_once", with(func(*OutputCluster) {}), ""},
		{"exactly_once", func(c *Config) { c.Kafka.Output.Brokers = []string{"b:9092"} }, ""},
		{"broker with a scheme", with(func(o *OutputCluster) { o.Brokers[0] = "kafka://b:9092" }),
			`kafka.output.brokers[0]: must be host:port or a host, got "kafka://b:9092"`},
		{"TLS without brokers", func(c *Config) { c.Kafka.Output.TLS.Enabled = true },
			"kafka.output.brokers: is required with the other settings of kafka.output"},
		{"SASL without brokers", func(c *Config) {
			c.Kafka.Output.SASL = SASL{Mechanism: "plain", Username: "u", Password: "p"}
		}, "kafka.output.brokers: is required with the other settings of kafka.output"},
		{"TLS that is off", with(func(o *OutputCluster) { o.TLS.ServerName = "b" }),
			"kafka.output.tls.server_name: has no effect while kafka.output.tls.enabled is false; " +
				"set enabled to true"},
		{"SASL without password", with(func(o *OutputCluster) {
			o.SASL = SASL{Mechanism: "plain", Username: "u"}
		}), "kafka.output.sasl.password: is required with kafka.output.sasl.mechanism plain"},
		{"a token without endpoint", with(func(o *OutputCluster) {
			o.SASL = SASL{Mechanism: "oauthbearer",
				OAuth: OAuth{ClientID: "c", ClientSecret: "s"}}
		}), "kafka.output.sasl.oauth.token_url: is required with kafka.output.sasl.mechanism " +
			"oauthbearer"},
		{"AWS without TLS", with(func(o *OutputCluster) {
			o.SASL = SASL{Mechanism: "aws-msk-iam"}
		}), "kafka.output.tls.enabled: must be true with kafka.output.sasl.mechanism aws-msk-iam"},
	})
}

func TestOAuthRules(t *testing.T) {
	const path = "kafka.sasl.oauth."
	with := func(set func(*OAuth)) func(*Config) {
		return func(c *Config) {
			c.Kafka.SASL = SASL{Mechanism: "oauthbearer",
				OAuth: OAuth{TokenURL: "https://login/token", ClientID: "c", ClientSecret: "s"}}
			set(&c.Kafka.SASL.OAuth)
		}
	}
	url := path + "token_url: must be an https URL without a password, or http on a loopback host"
	extension := path +
		"extensions[0]: must be name=value with a name of letters other than auth, got "
	testRules(t, []string{"orders"}, []rule{
		{"what is required", with(func(*OAuth) {}), ""},
		{"everything", with(func(o *OAuth) {
			o.Scopes, o.Audience, o.Extensions = []string{"kafka"}, "brokers",
				[]string{"logicalCluster=lkc-1", "identityPoolId=pool=1"}
		}), ""},
		{"nothing", with(func(o *OAuth) { *o = OAuth{} }),
			path + "token_url: is required with kafka.sasl.mechanism oauthbearer\n" +
				path + "client_id: is required with kafka.sasl.mechanism oauthbearer\n" +
				path + "client_secret: is required with kafka.sasl.mechanism oauthbearer"},
		{"a URL without encryption", with(func(o *OAuth) { o.TokenURL = "http://login/token" }),
			url},
		{"a URL on the loopback", with(func(o *OAuth) {
			o.TokenURL = "http://127.0.0.1:8080/token"
		}), ""},
		{"a URL without host", with(func(o *OAuth) { o.TokenURL = "https:///token" }), url},
		{"a URL with a password, which is not shown", with(func(o *OAuth) {
			o.TokenURL = "https://u:p@login/token"
		}), url},
		{"an extension without value", with(func(o *OAuth) { o.Extensions = []string{"a"} }),
			extension + `"a"`},
		{"an extension of another name", with(func(o *OAuth) { o.Extensions = []string{"a_1=b"} }),
			extension + `"a_1=b"`},
		{"the extension that holds the token", with(func(o *OAuth) {
			o.Extensions = []string{"auth=b"}
		}), extension + `"auth=b"`},
		{"no such file", with(func(o *OAuth) { o.CAFile = "none" }),
			path + "ca_file: must be a readable file: open none: no such file or directory"},
		{"a username", func(c *Config) {
			with(func(*OAuth) {})(c)
			c.Kafka.SASL.Username = "u"
		}, "kafka.sasl.username: belongs to kafka.sasl.mechanism plain or scram-sha-…, not to " +
			"oauthbearer"},
		{"with another mechanism", func(c *Config) {
			c.Kafka.SASL = SASL{Mechanism: "plain", Username: "u", Password: "p",
				OAuth: OAuth{ClientSecret: "s"}}
		}, path + "client_secret: belongs to kafka.sasl.mechanism oauthbearer, not to plain"},
		{"without a mechanism", func(c *Config) { c.Kafka.SASL.OAuth.ClientID = "c" },
			path + "client_id: has no effect without kafka.sasl.mechanism; set the mechanism"},
	})
}

func TestAWSRules(t *testing.T) {
	with := func(encrypted bool, a AWS) func(*Config) {
		return func(c *Config) {
			c.Kafka.TLS.Enabled = encrypted
			c.Kafka.SASL = SASL{Mechanism: "aws-msk-iam", AWS: a}
		}
	}
	testRules(t, []string{"orders"}, []rule{
		{"nothing is required", with(true, AWS{}), ""},
		{"everything", with(true,
			AWS{Profile: "kafka", RoleARN: "arn:aws:iam::123456789012:role/kafka"}), ""},
		{"no encryption", with(false, AWS{}),
			"kafka.tls.enabled: must be true with kafka.sasl.mechanism aws-msk-iam"},
		{"a role's name", with(true, AWS{RoleARN: "kafka"}),
			`kafka.sasl.aws.role_arn: must be an ARN such as arn:aws:iam::123456789012:role/kafka, got "kafka"`},
		{"without a mechanism", func(c *Config) { c.Kafka.SASL.AWS.Profile = "p" },
			"kafka.sasl.aws.profile: has no effect without kafka.sasl.mechanism; set the " +
				"mechanism"},
	})
}

func TestTLSRules(t *testing.T) {
	dir := t.TempDir()
	pem, missing := filepath.Join(dir, "a.pem"), filepath.Join(dir, "missing.pem")
	if err := os.WriteFile(pem, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	disabled := func(key string) string {
		return "kafka.tls." + key +
			": has no effect while kafka.tls.enabled is false; set enabled to true"
	}
	set := func(s TLS) func(*Config) { return func(c *Config) { c.Kafka.TLS = s } }
	testRules(t, []string{"orders"}, []rule{
		{"ca_file while disabled", set(TLS{CAFile: pem}), disabled("ca_file")},
		{"certificate while disabled", set(TLS{CertFile: pem, KeyFile: pem}),
			disabled("cert_file") + "\n" + disabled("key_file")},
		{"server_name while disabled", set(TLS{ServerName: "a"}), disabled("server_name")},
		{"cert_file alone", set(TLS{Enabled: true, CertFile: pem}),
			"kafka.tls.key_file: is required with cert_file"},
		{"key_file alone", set(TLS{Enabled: true, KeyFile: pem}),
			"kafka.tls.cert_file: is required with key_file"},
		{"missing file", set(TLS{Enabled: true, CAFile: missing}),
			"kafka.tls.ca_file: must be a readable file: open " + missing +
				": no such file or directory"},
		{"folder", set(TLS{Enabled: true, CAFile: dir}),
			"kafka.tls.ca_file: must be a readable file: " + dir + " is a directory"},
		{"all", set(TLS{Enabled: true, CAFile: pem, CertFile: pem, KeyFile: pem, ServerName: "a"}),
			""},
		{"Cassandra's own section", func(c *Config) { withCassandra(c).TLS = TLS{CAFile: pem} },
			"store.cassandra.tls.ca_file: has no effect while store.cassandra.tls.enabled is " +
				"false; set enabled to true"},
	})
}

func TestStoreRules(t *testing.T) {
	cassandra := func(set func(*Cassandra)) func(*Config) {
		return func(c *Config) { set(withCassandra(c)) }
	}
	testRules(t, []string{"orders"}, []rule{
		{"type", func(c *Config) { c.Store.Type = "casandra" },
			`store.type: must be embedded, cassandra, redis, postgres or kafka, got "casandra"; did you mean cassandra?`},
		{"embedded without path", func(c *Config) {
			c.Store.Type, c.Store.Embedded.Path = StoreEmbedded, ""
		},
			"store.embedded.path: is required"},
		{"the section that is not used", func(c *Config) { c.Store.Cassandra = Cassandra{} }, ""},
		{"cassandra", cassandra(func(*Cassandra) {}), ""},
		{"no hosts", cassandra(func(s *Cassandra) { s.Hosts = nil }),
			"store.cassandra.hosts: is required, at least one host:port"},
		{"host", cassandra(func(s *Cassandra) { s.Hosts = []string{"a b"} }),
			`store.cassandra.hosts[0]: must be host:port or a host, got "a b"`},
		{"keyspace", cassandra(func(s *Cassandra) { s.Keyspace = "my-keyspace" }),
			`store.cassandra.keyspace: must be a letter and then letters, digits and _, at most 48 in all, got "my-keyspace"`},
		{"a word that CQL reserves", cassandra(func(s *Cassandra) {
			s.Keyspace, s.Table = "Order", "select"
		}), ""},
		{"Cassandra's own keyspace", cassandra(func(s *Cassandra) { s.Keyspace = "System_auth" }),
			`store.cassandra.keyspace: must not be system or begin with system_, which are ` +
				`Cassandra's own, got "System_auth"`},
		{"the table of the scopes", cassandra(func(s *Cassandra) { s.Table = "dedup_scopes" }),
			"store.cassandra.table: must not be dedup_scopes, which keeps the settings of the scopes"},
		{"the registry of a log is a table of claims", cassandra(func(s *Cassandra) {
			s.Layout, s.Table = LayoutLog, "claim_log_registry"
		}), `store.cassandra.log.table: must not be the table of another layout, got "claim_log"`},
		{"table", cassandra(func(s *Cassandra) { s.Table = "1table" }),
			`store.cassandra.table: must be a letter and then letters, digits and _, at most 48 in all, got "1table"`},
		{"longest table", cassandra(func(s *Cassandra) { s.Table = strings.Repeat("t", 48) }), ""},
		{"table too long", cassandra(func(s *Cassandra) { s.Table = strings.Repeat("t", 49) }),
			`store.cassandra.table: must be a letter and then letters, digits and _, at most 48 in all, got "` + strings.Repeat("t", 49) + `"`},
		{"password without username", cassandra(func(s *Cassandra) { s.Password = "p" }),
			"store.cassandra.username: is required with password"},
		{"username without password", cassandra(func(s *Cassandra) { s.Username = "u" }),
			"store.cassandra.password: is required with username"},
		{"consistency that may forget", cassandra(func(s *Cassandra) { s.Consistency = "ONE" }),
			`store.cassandra.consistency: must be LOCAL_QUORUM, QUORUM, EACH_QUORUM or ALL, got "ONE"`},
		{"serial consistency", cassandra(func(s *Cassandra) {
			s.SerialConsistency = "local_serial"
		}),
			`store.cassandra.serial_consistency: must be LOCAL_SERIAL or SERIAL, got "local_serial"; did you mean LOCAL_SERIAL?`},
		{"timeout", cassandra(func(s *Cassandra) { s.Timeout = time.Second }),
			"store.cassandra.timeout: must be at least 2s, got 1s"},
		{"no connections", cassandra(func(s *Cassandra) { s.Connections = 0 }),
			"store.cassandra.connections: must be at least 1, got 0"},
		{"too many connections", cassandra(func(s *Cassandra) { s.Connections = 33 }),
			"store.cassandra.connections: must be at most 32, got 33"},
		{"nothing in flight", cassandra(func(s *Cassandra) { s.InFlight = 0 }),
			"store.cassandra.in_flight: must be at least 1, got 0"},
		{"too much in flight", cassandra(func(s *Cassandra) { s.InFlight = 4097 }),
			"store.cassandra.in_flight: must be at most 4096, got 4097"},
		{"empty batches", cassandra(func(s *Cassandra) { s.BatchClaims = 0 }),
			"store.cassandra.batch_claims: must be at least 1, got 0"},
		{"batches too large", cassandra(func(s *Cassandra) { s.BatchClaims = 201 }),
			"store.cassandra.batch_claims: must be at most 200, got 201"},
		{"replication", cassandra(func(s *Cassandra) { s.Replication = "3" }),
			`store.cassandra.replication: must be a CQL map such as {'class': 'NetworkTopologyStrategy', 'dc1': 3}, got "3"`},
	})
}

func TestPostgresRules(t *testing.T) {
	postgres := func(set func(*Postgres)) func(*Config) {
		return func(c *Config) { set(withPostgres(c)) }
	}
	testRules(t, []string{"orders"}, []rule{
		{"postgres", postgres(func(*Postgres) {}), ""},
		{"no hosts", postgres(func(s *Postgres) { s.Hosts = nil }),
			"store.postgres.hosts: is required, at least one host:port"},
		{"host", postgres(func(s *Postgres) { s.Hosts = []string{"postgres://a"} }),
			`store.postgres.hosts[0]: must be host:port or a host, got "postgres://a"`},
		{"database", postgres(func(s *Postgres) { s.Database = "" }),
			"store.postgres.database: is required"},
		{"username", postgres(func(s *Postgres) { s.Username = "" }),
			"store.postgres.username: is required"},
		{"no password", postgres(func(s *Postgres) { s.Password = "" }), ""},
		{"its own section of TLS", postgres(func(s *Postgres) { s.TLS.ServerName = "a" }),
			"store.postgres.tls.server_name: has no effect while store.postgres.tls.enabled is " +
				"false; set enabled to true"},
		{"schema", postgres(func(s *Postgres) { s.Schema = "Kdedup" }),
			`store.postgres.schema: must be a lower-case letter and then lower-case letters, digits and _, at most 48 in all, got "Kdedup"`},
		{"PostgreSQL's own schema", postgres(func(s *Postgres) { s.Schema = "pg_claims" }),
			`store.postgres.schema: must not be information_schema or begin with pg_, which are ` +
				`PostgreSQL's own, got "pg_claims"`},
		{"table", postgres(func(s *Postgres) { s.Table = "a-b" }),
			`store.postgres.table: must be a lower-case letter and then lower-case letters, digits and _, at most 48 in all, got "a-b"`},
		{"longest table", postgres(func(s *Postgres) { s.Table = strings.Repeat("t", 48) }), ""},
		{"the other table", postgres(func(s *Postgres) { s.Table = "dedup_scopes" }),
			"store.postgres.table: must not be dedup_scopes, which keeps the settings of the " +
				"scopes"},
		{"timeout", postgres(func(s *Postgres) { s.Timeout = time.Millisecond }),
			"store.postgres.timeout: must be at least 1s, got 1ms"},
		{"no connections", postgres(func(s *Postgres) { s.Connections = 0 }),
			"store.postgres.connections: must be at least 1, got 0"},
		{"too many connections", postgres(func(s *Postgres) { s.Connections = 101 }),
			"store.postgres.connections: must be at most 100, got 101"},
		{"empty batches", postgres(func(s *Postgres) { s.BatchClaims = 0 }),
			"store.postgres.batch_claims: must be at least 1, got 0"},
		{"batches too large", postgres(func(s *Postgres) { s.BatchClaims = 10_001 }),
			"store.postgres.batch_claims: must be at most 10000, got 10001"},
		{"no sweep", postgres(func(s *Postgres) { s.SweepInterval = 0 }), ""},
		{"sweep", postgres(func(s *Postgres) { s.SweepInterval = time.Millisecond }),
			"store.postgres.sweep_interval: must be at least 1s, got 1ms"},
	})
}

func TestCassandraLogRules(t *testing.T) {
	inLog := func(set func(*Cassandra)) func(*Config) {
		return func(c *Config) {
			c.Store.Type, c.Store.Cassandra.Hosts = StoreCassandra, []string{"cassandra"}
			c.Store.Cassandra.Layout = LayoutLog
			set(&c.Store.Cassandra)
		}
	}
	const refused = "store.cassandra.log.table: must be a letter and then letters, digits and _, " +
		"at most 39 in all, got "
	long := strings.Repeat("t", 40)
	testRules(t, []string{"orders"}, []rule{
		{"defaults", inLog(func(*Cassandra) {}), ""},
		{"rows need no log", inLog(func(s *Cassandra) {
			s.Layout, s.Log = LayoutRows, CassandraLog{}
		}), ""},
		{"layout", inLog(func(s *Cassandra) { s.Layout = "columns" }),
			`store.cassandra.layout: must be rows or log, got "columns"`},
		{"no room for the registry", inLog(func(s *Cassandra) { s.Log.Table = long }),
			refused + `"` + long + `"`},
		{"the name of a table", inLog(func(s *Cassandra) { s.Log.Table = "log; DROP" }),
			refused + `"log; DROP"`},
		{"the table of the rows", inLog(func(s *Cassandra) { s.Log.Table = s.Table }),
			`store.cassandra.log.table: must not be the table of another layout, got ` +
				`"processed_messages"`},
		{"no shards", inLog(func(s *Cassandra) { s.Log.Shards = 0 }),
			"store.cassandra.log.shards: must be at least 1, got 0"},
		{"index", inLog(func(s *Cassandra) { s.Log.Index = "disk" }),
			`store.cassandra.log.index: must be files or memory, got "disk"`},
		{"no path", inLog(func(s *Cassandra) { s.Log.Path = "" }),
			"store.cassandra.log.path: is required"},
		{"no path, none needed", inLog(func(s *Cassandra) {
			s.Log.Path, s.Log.Index = "", IndexMemory
		}), ""},
	})
}

func TestClaimLogRules(t *testing.T) {
	claimLog := func(set func(*ClaimLog)) func(*Config) {
		return func(c *Config) { c.Store.Type = StoreKafka; set(&c.Store.Kafka) }
	}
	topic := func(name string) func(*Config) {
		return claimLog(func(s *ClaimLog) { s.Topic = name })
	}
	refused := "store.kafka.topic: must be at most 60 of letters, digits, '.', '_', '-' around " +
		"{group}, such as {group}.claims, got "
	testRules(t, []string{"orders"}, []rule{
		{"defaults", claimLog(func(*ClaimLog) {}), ""},
		{"a topic of another name", topic("internal.{group}"), ""},
		{"one topic for all groups", topic("claims"), refused + `"claims"`},
		{"a topic that Kafka has not", topic("{group}/claims"), refused + `"{group}/claims"`},
		{"no shards", claimLog(func(s *ClaimLog) { s.Shards = 0 }),
			"store.kafka.shards: must be at least 1, got 0"},
		{"shards", claimLog(func(s *ClaimLog) { s.Shards = 1001 }),
			"store.kafka.shards: must be at most 1000, got 1001"},
		{"index", claimLog(func(s *ClaimLog) { s.Index = "disk" }),
			`store.kafka.index: must be files or memory, got "disk"`},
		{"no path", claimLog(func(s *ClaimLog) { s.Path = "" }), "store.kafka.path: is required"},
		{"a third cluster", claimLog(func(s *ClaimLog) { s.Cluster = "other" }),
			`store.kafka.cluster: must be input or output, got "other"`},
		{"another cluster where there is one", claimLog(func(s *ClaimLog) {
			s.Cluster = ClusterOutput
		}), "store.kafka.cluster: must be input while there is one cluster, got output; name its " +
			"brokers in kafka.output, or leave this setting out"},
		{"the other cluster", func(c *Config) {
			claimLog(func(s *ClaimLog) { s.Cluster = ClusterOutput })(c)
			c.Kafka.Output.Brokers = []string{"there:9092"}
		}, ""},
		{"no path, none needed", claimLog(func(s *ClaimLog) {
			s.Path, s.Index = "", IndexMemory
		}), ""},
		{"timeout", claimLog(func(s *ClaimLog) { s.Timeout = time.Millisecond }),
			"store.kafka.timeout: must be at least 1s, got 1ms"},
	})
}
