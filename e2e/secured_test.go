package e2e_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/Shopify/toxiproxy/v2"
	"github.com/gocql/gocql"
	"github.com/rs/zerolog"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/internal/testkit"
	"github.com/kdedup/kdedup/internal/testkit/servers"
)

// secured is a Kafka and a Cassandra that let nobody in without a certificate or a password, and
// allow nothing that was not granted. All cases of TestSecurity share them. The tests themselves
// come in unencrypted, as superusers.
type secured struct {
	authority *testkit.Authority // signs for the servers and their clients
	directory string             // of the files that clients need
	kafka     *servers.Server
	admin     *kadm.Client
	cassandra *servers.Server
	cql       *gocql.Session
	// lines that a test may break, by listener; "CASSANDRA" is one
	cut map[string]*toxiproxy.Proxy

	kafkaPassword, cassandraPassword string // the owner's
}

// Listeners of the secured broker.
const (
	scramListener   = "SCRAM"   // TLS, and SCRAM-SHA-512
	certListener    = "CERT"    // mTLS
	tokenListener   = "TOKEN"   // TLS, and OAUTHBEARER
	expiredListener = "EXPIRED" // TLS with a certificate that has expired
	cassandraLine   = "CASSANDRA"
)

func startSecured(t *testing.T) *secured {
	t.Helper()
	servers.Need(t)
	s := &secured{authority: testkit.NewAuthority(t), directory: t.TempDir(),
		cut: make(map[string]*toxiproxy.Proxy)}
	s.save(t, "ca.pem", s.authority.PEM())
	s.save(t, "other-ca.pem", testkit.NewAuthority(t).PEM())
	started := make(chan error, 2)
	kafkaDir, cassandraDir := t.TempDir(), t.TempDir()
	go func() { started <- s.startKafka(t.Context(), kafkaDir) }()
	go func() { started <- s.startCassandra(t.Context(), cassandraDir) }()
	err := errors.Join(<-started, <-started)
	for _, server := range []*servers.Server{s.kafka, s.cassandra} {
		if server != nil {
			t.Cleanup(server.Kill) // nobody wants their data
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	s.connect(t)
	return s
}

// save writes a file that servers and clients name.
func (s *secured) save(t *testing.T, name string, content []byte) string {
	t.Helper()
	path := s.file(name)
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func (s *secured) file(name string) string { return filepath.Join(s.directory, name) }

// keystore writes a key and its certificate into one file, as Kafka and Cassandra take them.
func (s *secured) keystore(name string, leaf testkit.Leaf) (string, error) {
	cert, key := s.authority.Issue(leaf)
	path := s.file(name)
	return path, os.WriteFile(path, append(key, cert...), 0o600)
}

func (s *secured) startKafka(ctx context.Context, dir string) error {
	good, err := s.keystore("broker.pem", testkit.Leaf{Name: "broker"})
	if err != nil {
		return err
	}
	expired, err := s.keystore("expired.pem",
		testkit.Leaf{Name: "broker", Ends: time.Now().Add(-time.Hour)})
	if err != nil {
		return err
	}
	config := map[string]string{
		"authorizer.class.name":          "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
		"allow.everyone.if.no.acl.found": "false",
		// the test and the broker itself, unencrypted
		"super.users": "User:ANONYMOUS;User:owner;User:later",
		// lets the sessions of tokens end with them
		"connections.max.reauth.ms":                  "3600000",
		"listener.name.cert.ssl.client.auth":         "required",
		"listener.name.cert.ssl.truststore.type":     "PEM",
		"listener.name.cert.ssl.truststore.location": s.file("ca.pem"),
		"ssl.principal.mapping.rules":                "RULE:^CN=(.*)$/$1/",

		"listener.name.scram.sasl.enabled.mechanisms":        "SCRAM-SHA-512",
		"listener.name.scram.scram-sha-512.sasl.jaas.config": "org.apache.kafka.common.security.scram.ScramLoginModule required;",
		// Tokens need no signature here: it is the client that is tested.
		"listener.name.token.sasl.enabled.mechanisms":      "OAUTHBEARER",
		"listener.name.token.oauthbearer.sasl.jaas.config": "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required;",
	}
	for listener, keystore := range map[string]string{
		scramListener: good, certListener: good, tokenListener: good, expiredListener: expired,
	} {
		prefix := "listener.name." + strings.ToLower(listener) + ".ssl.keystore."
		config[prefix+"type"], config[prefix+"location"] = "PEM", keystore
	}
	s.kafka, err = servers.StartKafka(ctx, servers.KafkaOptions{
		Dir: dir, Heap: "320m", Flags: servers.QuickStart, Config: config,
		Listeners: []servers.KafkaListener{
			{Name: scramListener, Protocol: "SASL_SSL", Proxied: true},
			{Name: certListener, Protocol: "SSL", Proxied: true},
			{Name: tokenListener, Protocol: "SASL_SSL"},
			{Name: expiredListener, Protocol: "SSL"},
		},
	})
	return err
}

// startCassandra starts a node on an address of its own: clients know it by that of its proxy.
func (s *secured) startCassandra(ctx context.Context, dir string) error {
	keystore, err := s.keystore("node.pem", testkit.Leaf{Name: "node"})
	if err != nil {
		return err
	}
	s.cassandra, err = servers.StartCassandra(ctx, servers.CassandraOptions{
		Dir: dir, Host: "127.0.0.78", Heap: "512m", Flags: servers.QuickStart, Proxied: true,
		Config: map[string]any{
			"authenticator": "PasswordAuthenticator", "authorizer": "CassandraAuthorizer",
			"role_manager": "CassandraRoleManager",
			// Changes count at once.
			"roles_validity": "0ms", "permissions_validity": "0ms", "credentials_validity": "0ms",
			"client_encryption_options": map[string]any{
				// optional: the test comes in without
				"enabled": true, "optional": true, "require_client_auth": true,
				"ssl_context_factory": map[string]any{
					"class_name": "org.apache.cassandra.security.PEMBasedSslContextFactory"},
				"keystore":   keystore,
				"truststore": s.file("ca.pem"),
			},
		},
	})
	return err
}

// connect makes the superusers' clients and the lines that tests may break.
func (s *secured) connect(t *testing.T) {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(s.kafka.Addr()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	s.admin = kadm.NewClient(client)
	cluster := gocql.NewCluster(s.cassandra.Addr())
	cluster.Authenticator = gocql.PasswordAuthenticator{Username: servers.CassandraSuperuser,
		Password: servers.CassandraSuperuser}
	cluster.Timeout, cluster.ConnectTimeout = 30*time.Second, 30*time.Second
	cluster.DisableInitialHostLookup = true // it would send us through the proxy
	if s.cql, err = cluster.CreateSession(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.cql.Close)
	s.line(t, scramListener, s.kafka.Listener(scramListener))
	s.line(t, certListener, s.kafka.Listener(certListener))
	s.line(t, cassandraLine, s.cassandra.Routes()[0])
}

func (s *secured) line(t *testing.T, name string, route servers.Route) {
	t.Helper()
	engine := toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.Nop())
	proxy := toxiproxy.NewProxy(engine, name, route.Listen, route.Upstream)
	if err := proxy.Start(); err != nil {
		t.Fatal(err)
	}
	s.cut[name] = proxy
	t.Cleanup(proxy.Stop)
}

// breakLine ends all connections; new ones are let through at once.
func (s *secured) breakLine(t *testing.T, name string) {
	t.Helper()
	s.cut[name].Stop()
	if err := s.cut[name].Start(); err != nil {
		t.Fatal(err)
	}
}

// password is long enough to be searched for in outputs, and new in each run.
func password(of string) string { return of + "-secret-" + rand.Text() }

// setScram makes a user of Kafka, or gives it another password.
func (s *secured) setScram(t *testing.T, user, secret string) {
	t.Helper()
	answers, err := s.admin.AlterUserSCRAMs(t.Context(), nil,
		[]kadm.UpsertSCRAM{{User: user, Mechanism: kadm.ScramSha512, Iterations: 4096,
			Password: secret}})
	if err == nil {
		err = answers.Error()
	}
	if err != nil {
		t.Fatal(err)
	}
}

// exec runs CQL as the superuser.
func (s *secured) exec(t *testing.T, statement string) {
	t.Helper()
	if err := s.cql.Query(statement).WithContext(t.Context()).Exec(); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

// setRole makes a role of Cassandra, or gives it another password.
func (s *secured) setRole(t *testing.T, role, secret string) {
	t.Helper()
	s.exec(t, fmt.Sprintf("CREATE ROLE IF NOT EXISTS %s WITH LOGIN = true", role))
	// one in five seconds is allowed
	testkit.Eventually(t, 30*time.Second, "another password of "+role, func() bool {
		err := s.cql.Query(fmt.Sprintf("ALTER ROLE %s WITH PASSWORD = '%s'", role,
			secret)).WithContext(t.Context()).Exec()
		if err != nil && !strings.Contains(err.Error(), "can only be changed every") {
			t.Fatal(err)
		}
		return err == nil
	})
}

// scram is the configuration of kafka for a user.
func (s *secured) scram(user, secret string) string {
	return fmt.Sprintf("{brokers: [%q], tls: {enabled: true, ca_file: %q}, sasl: {mechanism: "+
		"scram-sha-512, username: %s, password: %q}}",
		s.kafka.Listener(scramListener).Listen, s.file("ca.pem"), user, secret)
}

// store is the configuration of store for a role, which also needs a certificate.
func (s *secured) store(t *testing.T, keyspace, role, secret string) string {
	t.Helper()
	cert, key := s.authority.Write(t.TempDir(), testkit.Leaf{Name: role})
	return fmt.Sprintf(
		"{type: cassandra, cassandra: {hosts: [%q], keyspace: %s, username: %s, password: %q, "+
			"tls: {enabled: true, ca_file: %q, cert_file: %q, key_file: %q, server_name: "+
			"localhost}, timeout: 30s}}",
		s.cassandra.Routes()[0].Listen, keyspace, role, secret, s.file("ca.pem"), cert, key)
}
