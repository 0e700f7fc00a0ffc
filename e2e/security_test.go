package e2e_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/kdedup/kdedup/internal/testkit"
)

// owner may do everything on the secured servers, by password and by certificate.
const owner = "owner"

// TestSecurity runs everything about connections on one Kafka and one Cassandra. What breaks lines
// comes last, and each case breaks another one.
func TestSecurity(t *testing.T) {
	t.Parallel()
	s := startSecured(t)
	s.kafkaPassword, s.cassandraPassword = password("scram"), password("cql")
	s.setScram(t, owner, s.kafkaPassword)
	s.setRole(t, owner, s.cassandraPassword)
	s.exec(t, "ALTER ROLE owner WITH SUPERUSER = true")
	t.Run("starts", func(t *testing.T) {
		for name, run := range map[string]func(*testing.T, *secured){
			"refused": testRefusedStarts,
			"tokens":  testTokens,
			"rights/" + exactlyOnce: func(t *testing.T, s *secured) {
				testRights(t, s, exactlyOnce)
			},
			"rights/" + atLeastOnce: func(t *testing.T, s *secured) {
				testRights(t, s, atLeastOnce)
			},
			"rights/claim log": testRightsOnAClaimLog,
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				run(t, s)
			})
		}
	})
	t.Run("later", func(t *testing.T) {
		for name, run := range map[string]func(*testing.T, *secured){
			"passwords":    testPasswordsThatChangeLater,
			"certificates": testCertificatesThatChangeLater,
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				run(t, s)
			})
		}
	})
}

// ownersPlace is where the owner has everything.
func (s *secured) ownersPlace(t *testing.T) place {
	t.Helper()
	return place{
		brokers: []string{s.kafka.Addr()},
		kafka:   s.scram(owner, s.kafkaPassword),
		store:   s.store(t, testkit.Keyspace(t), owner, s.cassandraPassword),
	}
}

// What is wrong at the start is one line with the section of the configuration, and exit code 1.
func testRefusedStarts(t *testing.T, s *secured) {
	at := s.ownersPlace(t)
	d := deployAt(t, at, exactlyOnce)
	cert, key := s.authority.Write(t.TempDir(),
		testkit.Leaf{Name: owner, Ends: time.Now().Add(-time.Hour)})
	wrong := password("wrong")
	token := startTokenEndpoint(t, s)
	kafka := func(text string) place { return place{kafka: text, store: at.store} }
	plainly := func(listener, more string) place {
		return kafka(fmt.Sprintf("{brokers: [%q]%s}", s.kafka.Listener(listener).Listen, more))
	}
	tls := fmt.Sprintf(", tls: {enabled: true, ca_file: %q", s.file("ca.pem"))
	for _, c := range []struct {
		name string
		at   place
		want []string
	}{
		{"Kafka's password", kafka(s.scram(owner, wrong)), []string{"kafka.sasl: ",
			"SASL_AUTHENTICATION_FAILED", "check the user and the password"}},
		{"Kafka's user", kafka(s.scram("nobody", wrong)),
			[]string{"kafka.sasl: ", "SASL_AUTHENTICATION_FAILED"}},
		{"Kafka's authority", kafka(strings.Replace(s.scram(owner, s.kafkaPassword), "ca.pem",
			"other-ca.pem", 1)),
			[]string{"kafka.tls: ", "signed by unknown authority", "ca_file must hold"}},
		{"the broker's certificate has expired", plainly(expiredListener, tls+"}"),
			[]string{"kafka.tls: ", "certificate has expired", "it is the brokers' certificate"}},
		{"our certificate has expired",
			plainly(certListener, fmt.Sprintf("%s, cert_file: %q, key_file: %q}", tls, cert, key)),
			[]string{"kafka.tls.cert_file: the certificate expired at "}},
		{"no certificate", plainly(certListener, tls+"}"),
			[]string{"kafka.tls: ", "remote error: tls: ", "misses one"}},
		{"no encryption", plainly(scramListener, ""), []string{"kafka.brokers: ",
			"is this a plaintext connection speaking to a tls endpoint?"}},
		{"another mechanism", kafka(strings.Replace(s.scram(owner, s.kafkaPassword),
			"scram-sha-512", "plain", 1)), []string{"kafka.sasl.mechanism: "}},
		{"the token endpoint's secret", kafka(token.settings(s, wrong)),
			[]string{"kafka.sasl.oauth.token_url: the endpoint answered 401 Unauthorized"}},
		{"Cassandra's password", place{kafka: at.kafka,
			store: strings.Replace(at.store, s.cassandraPassword, wrong, 1)},
			[]string{"store.cassandra: ", "Provided username owner and/or password are incorrect"}},
		{"Cassandra's authority",
			place{kafka: at.kafka, store: strings.Replace(at.store, "ca.pem", "other-ca.pem", 1)},
			[]string{"store.cassandra: ", "signed by unknown authority"}},
		{"Cassandra's name", place{kafka: at.kafka,
			store: strings.Replace(at.store, "server_name: localhost", "server_name: another", 1)},
			[]string{"store.cassandra: ", "certificate is valid for localhost, not another"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			one := *d
			one.t = t
			line, all := one.at(c.at).refused("run")
			for _, want := range c.want {
				if !strings.Contains(line, want) {
					t.Errorf("got %q, want …%s…", line, want)
				}
			}
			hides(t, "kdedup run", all, s.kafkaPassword, s.cassandraPassword, wrong, token.secret)
		})
	}
}

// checkAll compares the clean topic with the input.
func (d *deployment) checkAll() {
	d.t.Helper()
	d.waitFor(1)
	d.mustBeClean()
}

// waitNotReady breaks the line again until it is noticed: files are read at most once a second.
func (s *secured) waitNotReady(i *instance, line string) {
	i.t.Helper()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	testkit.Eventually(i.t, time.Minute, i.name+" is not ready any more", func() bool {
		select {
		case <-tick.C:
			s.breakLine(i.t, line)
		default:
		}
		return !i.ready()
	})
}

// replace writes a file in one step, as those who renew certificates do.
func replace(t *testing.T, path string, content []byte) {
	t.Helper()
	fresh := filepath.Join(filepath.Dir(path), ".fresh")
	if err := os.WriteFile(fresh, content, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(fresh, path); err != nil {
		t.Fatal(err)
	}
}

// Passwords that do not fit any more hold up the lanes and the claims, until they fit again.
// Nothing is lost or doubled meanwhile, and no output shows one of all the secrets.
func testPasswordsThatChangeLater(t *testing.T, s *secured) {
	kafkaSecret, cqlSecret := password("scram"), password("cql")
	s.setScram(t, "later", kafkaSecret)
	s.setRole(t, "later", cqlSecret)
	s.exec(t, "ALTER ROLE later WITH SUPERUSER = true")
	at := place{brokers: []string{s.kafka.Addr()}, kafka: s.scram("later", kafkaSecret),
		store: s.store(t, testkit.Keyspace(t), "later", cqlSecret)}
	d := deployAt(t, at, exactlyOnce, "session_timeout: 6s")
	one := watched(t, d, kafkaSecret, cqlSecret)
	d.produce(1000, 31)
	d.waitFor(1)
	one.waitReady() // /readyz may still tell of the start

	s.setScram(t, "later", password("other"))
	s.waitNotReady(one.instance, scramListener)
	d.produce(1000, 32)
	one.search()
	s.setScram(t, "later", kafkaSecret)
	one.waitReady()

	s.setRole(t, "later", password("other"))
	s.waitNotReady(one.instance, cassandraLine)
	d.produce(1000, 33)
	one.search()
	s.setRole(t, "later", cqlSecret)
	one.waitReady()
	d.checkAll()
	one.search()
	one.stop()
}

// Certificates are renewed without a restart. Until they are, lanes and claims wait.
func testCertificatesThatChangeLater(t *testing.T, s *secured) {
	dir := t.TempDir()
	cert, key := s.authority.Write(dir, testkit.Leaf{Name: owner})
	ca := filepath.Join(dir, "ca.pem")
	replace(t, ca, s.authority.PEM())
	at := place{brokers: []string{s.kafka.Addr()}, store: embeddedStore(t), kafka: fmt.Sprintf(
		"{brokers: [%q], tls: {enabled: true, ca_file: %q, cert_file: %q, key_file: %q}}",
		s.kafka.Listener(certListener).Listen, ca, cert, key)}
	d := deployAt(t, at, atLeastOnce, "session_timeout: 6s")
	one := d.start("one")
	d.produce(1000, 34)
	d.waitFor(1)
	one.waitReady()

	replace(t, ca, testkit.NewAuthority(t).PEM())
	s.waitNotReady(one, certListener)
	s.authority.Write(dir, testkit.Leaf{Name: owner, Ends: time.Now().Add(-time.Hour)})
	replace(t, ca, s.authority.PEM())
	d.produce(1000, 35)
	testkit.Eventually(t, time.Minute, "the broker's refusal", func() bool {
		return strings.Contains(one.text(), "remote error: tls: ")
	})
	s.waitNotReady(one, certListener)
	s.authority.Write(dir, testkit.Leaf{Name: owner})
	one.waitReady()
	d.checkAll()
	one.stop()
}

// One token serves all connections; it is renewed before it ends. Without a new one the lanes wait.
func testTokens(t *testing.T, s *secured) {
	token := startTokenEndpoint(t, s)
	at := place{brokers: []string{s.kafka.Addr()}, store: embeddedStore(t),
		kafka: token.settings(s, token.secret)}
	d := deployAt(t, at, atLeastOnce, "session_timeout: 6s")
	one := d.start("one")
	d.produce(1000, 36)
	d.waitFor(1)
	first := token.given()
	testkit.Eventually(t, time.Minute, "two renewals", func() bool {
		return token.given() >= first+2
	})
	d.produce(1000, 37)
	d.waitFor(1)
	one.waitReady()
	directory := filepath.Dir(t.TempDir()) // has the test's name, as the store's path in the log
	if log := strings.ReplaceAll(one.text(), directory, ""); strings.Contains(log, "SASL") ||
		strings.Contains(log, "token") {
		t.Error("a renewal was noticed")
	}
	token.fail(true)
	testkit.Eventually(t, time.Minute, "the end of the last token", func() bool {
		return !one.ready()
	})
	d.produce(1000, 38)
	token.fail(false)
	one.waitReady()
	d.checkAll()
	hides(t, "the log", one.text(), token.secrets()...)
	one.stop()
	if most := int(time.Since(token.began)/(tokenLife*4/5)) + 3; token.given() > most {
		t.Errorf("%d tokens, at most %d were needed", token.given(), most)
	}
}
