package e2e_test

import (
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/config"
	"github.com/kdedup/kdedup/connect/kafka"
	"github.com/kdedup/kdedup/internal/testkit"
	"github.com/kdedup/kdedup/internal/testkit/servers"
)

const (
	plainListener      = "PLAIN"
	standardAuthorizer = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
)

// guarded starts a broker that allows nothing that was not granted, and knows the users kdedup,
// kdedup-setup and kdedup-offsets by a password.
func guarded(t *testing.T, secret string) *secured {
	t.Helper()
	s, err := servers.StartKafka(t.Context(), servers.KafkaOptions{
		Dir: t.TempDir(), Heap: "320m", Flags: servers.QuickStart,
		Listeners: []servers.KafkaListener{{Name: plainListener, Protocol: "SASL_PLAINTEXT"}},
		Config: map[string]string{
			"authorizer.class.name":                       standardAuthorizer,
			"allow.everyone.if.no.acl.found":              "false",
			"super.users":                                 "User:ANONYMOUS", // the test, the broker
			"listener.name.plain.sasl.enabled.mechanisms": "PLAIN",
			"listener.name.plain.plain.sasl.jaas.config": fmt.Sprintf("org.apache.kafka.common."+
				"security.plain.PlainLoginModule required user_kdedup=%q user_kdedup-setup=%q "+
				"user_kdedup-offsets=%q;", secret, secret, secret),
		}})
	servers.ForTest(t, s, err)
	admin := kadm.NewClient(testkit.KafkaClient(t, []string{s.Addr()}))
	return &secured{kafka: s, admin: admin}
}

// as is the way of a user to both clusters.
func (s *secured) as(user, secret string, output *secured) string {
	login := fmt.Sprintf("sasl: {mechanism: plain, username: %s, password: %q}", user, secret)
	return fmt.Sprintf("{brokers: %q, %s, output: {brokers: %q, %s}}",
		s.kafka.Listener(plainListener).Listen, login,
		output.kafka.Listener(plainListener).Listen, login)
}

// A pipeline runs with exactly the rights of docs/security.md on each of two real clusters. Taken
// away one by one, each is missed, and the error says on what.
func TestRightsOnTwoClusters(t *testing.T) {
	testkit.InTurn(t)
	t.Parallel()
	servers.Need(t)
	const secret = "secret-of-both"
	input, output := guarded(t, secret), guarded(t, secret)
	at := place{brokers: []string{input.kafka.Addr()}, output: []string{output.kafka.Addr()},
		store: embeddedStore(t), kafka: input.as("kdedup", secret, output)}
	d := prepare(t, at, exactlyOnce)
	manual := readManual(t)
	acls := func(what string) []acl {
		return manual.acls("Kafka ACLs of "+what, strings.NewReplacer("orders", d.input))
	}
	at.kafka = input.as("kdedup-setup", secret, output)
	setup := d.at(at)
	if out, code := setup.try("setup", "--skip-self-test"); code != 1 ||
		!strings.Contains(out, "the Kafka ACLs do not allow") {
		t.Errorf("setup without a right: %d\n%s", code, out)
	}
	ofInput := func(a acl) bool { return a.kind == "--topic" && a.name == d.input }
	input.allow(t, slices.DeleteFunc(acls("setup"), func(a acl) bool { return !ofInput(a) })...)
	output.allow(t, slices.DeleteFunc(acls("setup"), ofInput)...)
	setup.command("setup", "--skip-self-test")

	const run = "run, exactly_once onto another cluster, on that of the "
	rights := map[*secured][]acl{input: acls(run + "input"), output: acls(run + "output")}
	for s, of := range rights {
		if out, code := d.try("validate"); code != 1 ||
			!strings.Contains(out, "the Kafka ACLs do not allow") {
			t.Errorf("validate without rights: %d\n%s", code, out)
		}
		s.allow(t, of...)
	}
	asked, clusters := askBoth(t, d)
	for s, of := range rights {
		for _, right := range of {
			s.without(t, right, func() error {
				return errors.Join(kafka.CheckRights(t.Context(), clusters, asked.Topics[0],
					[]string{d.group + "-one-0"})...)
			})
		}
	}
	d.command("validate")
	d.produce(2000, 51)
	one := d.start("one")
	one.waitReady()
	d.waitFor(1)
	d.mustBeClean()
	if strings.Contains(one.text(), "AUTHORIZATION_FAILED") {
		t.Error("with every right the log says AUTHORIZATION_FAILED")
	}
	one.stop()

	at.kafka = input.as("kdedup-offsets", secret, output)
	const move = "offsets onto another cluster, on that of the "
	movesWithRights(t, d.at(at), map[*secured][]acl{input: acls(move + "input"),
		output: acls(move + "output")})
}

// movesWithRights moves a consumer there and back with the rights, and with none fewer.
func movesWithRights(t *testing.T, d *deployment, rights map[*secured][]acl) {
	t.Helper()
	group := d.input + "-billing"
	d.commitAnywhere(group, d.input, rand.New(rand.NewPCG(51, 1)))
	var said string
	moves := func() bool {
		for _, back := range [][]string{nil, {"--back"}} {
			out, code := d.try(append([]string{"offsets", "--group", group, "--apply", "--yes"},
				back...)...)
			if said = out; code != 0 {
				return false
			}
		}
		return true
	}
	for s, of := range rights {
		for i := range of {
			if of[i].name == "billing" {
				of[i].name = group
			}
		}
		s.allow(t, of...)
	}
	testkit.Eventually(t, time.Minute, "a move with every right", moves)
	for s, of := range rights {
		for _, right := range of {
			s.forbid(t, right)
			testkit.Eventually(t, time.Minute, fmt.Sprintf("an error without %s on %s",
				right.operation, right.name), func() bool {
				return !moves() && (strings.Contains(said, "docs/security.md") ||
					strings.Contains(said, "may not be seen"))
			})
			t.Logf("without %s on %s: %s", right.operation, right.name, said)
			s.allow(t, right)
			testkit.Eventually(t, time.Minute, "a move again", moves)
		}
	}
}

// askBoth is what a process asks both clusters at its start.
func askBoth(t *testing.T, d *deployment) (config.Config, kafka.Clusters) {
	t.Helper()
	c, err := config.Load(d.config, nil)
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)
	input, err := kafka.NewConnector(t.Context(), c.Kafka, log)
	if err != nil {
		t.Fatal(err)
	}
	output, err := kafka.NewOutputConnector(t.Context(), c.Kafka, input, log)
	if err != nil {
		t.Fatal(err)
	}
	var clients []*kgo.Client
	for _, connector := range []*kafka.Connector{input, output} {
		client, err := kgo.NewClient(append(connector.AdminOptions("asker", log),
			kgo.MetadataMinAge(20*time.Millisecond))...)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(client.Close)
		clients = append(clients, client)
	}
	return c, kafka.Clusters{Input: clients[0], Output: clients[1]}
}
