package e2e_test

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kdedup/kdedup/config"
	"github.com/kdedup/kdedup/connect/kafka"
	"github.com/kdedup/kdedup/internal/testkit"
)

// testRights runs a delivery with exactly the rights of docs/security.md: setup, run, id lookup,
// report, backfill, skip, redrive and offsets, each by its own user. Taken away one by one, each
// right is missed, and the error says on what.
func testRights(t *testing.T, s *secured, delivery string) {
	users := map[string]*user{}
	for _, name := range []string{"kdedup", "kdedup-setup", "kdedup-reader", "kdedup-report",
		"kdedup-backfill", "kdedup-operator", "kdedup-redrive", "kdedup-offsets",
	} {
		users[name] = s.newUser(t, name+"-"+strings.ReplaceAll(delivery, "_", "-"), delivery)
	}
	run, setup, reader := users["kdedup"], users["kdedup-setup"], users["kdedup-reader"]
	keyspace := testkit.Keyspace(t)
	at := place{brokers: []string{s.kafka.Addr()}}
	d := prepare(t, at, delivery)
	as := func(u *user) *deployment { return d.at(u.place(s, keyspace)) }
	manual := readManual(t)
	acls := func(what string) []acl {
		names := []string{"orders", d.input, "billing", d.input + "-billing"}
		// the longer ones first
		for _, name := range slices.Backward(slices.Sorted(maps.Keys(users))) {
			names = append(names, "User:"+name, users[name].principal())
		}
		return manual.acls(what, strings.NewReplacer(names...))
	}
	grants := func(what string) []string {
		return manual.block("Cassandra grants of "+what,
			strings.NewReplacer("kdedup.", keyspace+".", "TO kdedup_setup", "TO "+setup.role(),
				"TO kdedup_reader", "TO "+reader.role(), "TO kdedup;", "TO "+run.role()+";"))
	}

	missing(t, as(setup), "CREATE permission on <all keyspaces>", "setup")
	for _, statement := range grants("setup") {
		s.exec(t, statement)
	}
	settingUp := ask(t, as(setup))
	forSetup := acls("Kafka ACLs of setup")
	slices.SortStableFunc(forSetup, inOrderOfSetup)
	// what it creates stays, so rights are given one by one, and none is taken
	for _, right := range forSetup {
		s.stopped(t, right, func() error {
			return kafka.Setup(t.Context(), kafka.OneCluster(settingUp.client), settingUp.topic,
				false, func(string) {})
		})
		s.allow(t, right)
	}
	as(setup).command("setup")

	forBackfill := strings.NewReplacer("kdedup.", keyspace+".", "TO kdedup;",
		"TO "+users["kdedup-backfill"].role()+";")
	for _, statement := range manual.block("Cassandra grants of run", forBackfill) {
		s.exec(t, statement)
	}
	for _, command := range []string{"report", "backfill"} { // of a group that never ran
		d := as(users["kdedup-"+command])
		for _, right := range acls("Kafka ACLs of " + command) {
			missing(t, d, right.name, command)
			s.allow(t, right)
		}
		d.command(command)
	}

	forRun := acls("Kafka ACLs of run, " + delivery)
	for _, statement := range grants("run") {
		s.exec(t, statement)
	}
	missing(t, as(run), "topic "+d.input+": the Kafka ACLs do not allow Read", "validate")
	missing(t, as(run), "consumer group "+d.group+": the Kafka ACLs do not allow Read", "run")
	s.allow(t, forRun...)
	running := ask(t, as(run))
	for _, right := range forRun {
		s.without(t, right, func() error {
			return errors.Join(kafka.CheckRights(t.Context(), kafka.OneCluster(running.client),
				running.topic, running.members)...)
		})
	}
	as(run).command("validate")
	for _, statement := range grants("run") {
		s.exec(t, strings.NewReplacer("GRANT", "REVOKE", " TO ", " FROM ").Replace(statement))
		words := strings.Fields(statement)
		missing(t, as(run), "no "+words[1]+" permission on <table "+words[4]+
			"> or any of its parents; docs/security.md", "validate")
		s.exec(t, statement)
	}
	d.produce(2000, 40)
	one := as(run).start("one")
	d.checkAll()
	one.waitReady()
	for _, refusal := range []string{"AUTHORIZATION_FAILED", " permission on "} {
		if strings.Contains(one.text(), refusal) {
			t.Errorf("with every right the log says %s", refusal)
		}
	}
	one.stop()

	forReader := acls("Kafka ACLs of id lookup")
	s.allow(t, forReader...)
	for _, statement := range grants("id lookup") {
		s.exec(t, statement)
	}
	id := fmt.Sprintf("%s/%08d", d.input, 0)
	if got := as(reader).command("id", "lookup", id); !strings.Contains(got, "forwarded") ||
		!strings.Contains(got, "yes") {
		t.Errorf("id lookup: %s", got)
	}

	s.allow(t, acls("Kafka ACLs of skip")...)
	next := d.record(40, 0, 2000)
	if err := d.client.ProduceSync(t.Context(), next).FirstErr(); err != nil {
		t.Fatal(err)
	}
	as(users["kdedup-operator"]).command("skip", "--partition", fmt.Sprint(next.Partition),
		"--offset", fmt.Sprint(next.Offset), "--drop", "--yes")

	for _, statement := range manual.block("Cassandra grants of run",
		strings.NewReplacer("kdedup.", keyspace+".", "TO kdedup;",
			"TO "+users["kdedup-redrive"].role()+";")) {
		s.exec(t, statement)
	}
	redriveWithRights(t, s, as(users["kdedup-redrive"]), acls("Kafka ACLs of redrive"))

	for _, statement := range manual.block("Cassandra grants of id lookup",
		strings.NewReplacer("kdedup.", keyspace+".", "TO kdedup_reader",
			"TO "+users["kdedup-offsets"].role())) {
		s.exec(t, statement)
	}
	group := d.input + "-billing"
	d.commitAnywhere(group, d.input, rand.New(rand.NewPCG(1, 1)))
	s.allow(t, acls("Kafka ACLs of offsets")...)
	as(users["kdedup-offsets"]).command("offsets", "--group", group, "--apply", "--yes")
	if len(d.committedBy(group, d.output())) == 0 {
		t.Error("kdedup offsets with every right has committed nothing")
	}
}

// redriveWithRights redrives a letter into either topic.
func redriveWithRights(t *testing.T, s *secured, d *deployment, rights []acl) {
	t.Helper()
	for i := range 2 {
		letter := d.record(100_000+i, 0, 3000+i)
		letter.Topic = d.input + ".dlq"
		letter.Headers = append(letter.Headers, deadLetterHeaders(d.input, i)...)
		d.mustProduce(letter)
	}
	if out, code := d.try("redrive", "--into", "clean", "--yes"); code != 1 ||
		!strings.Contains(out, "docs/security.md") && !strings.Contains(out, "AUTHORIZATION") {
		t.Errorf("kdedup redrive without a right: exit code %d\n%s", code, out)
	}
	s.allow(t, rights...)
	for _, into := range []string{"clean", "input"} {
		out := d.command("redrive", "--into", into, "--limit", "1", "--yes")
		if !strings.Contains(out, "1  into "+d.input) {
			t.Errorf("redrive --into %s with every right:\n%s", into, out)
		}
	}
}

func deadLetterHeaders(input string, offset int) (headers []kgo.RecordHeader) {
	for _, h := range [][2]string{{"kdedup-reason", "missing_id_absent"},
		{"kdedup-source-topic", input}, {"kdedup-source-partition", "0"},
		{"kdedup-source-offset", fmt.Sprint(offset)},
		{"kdedup-source-timestamp", time.Now().UTC().Format("2006-01-02T15:04:05.000Z")}} {
		headers = append(headers, kgo.RecordHeader{Key: h[0], Value: []byte(h[1])})
	}
	return headers
}

// testRightsOnAClaimLog runs with exactly the rights of docs/security.md, on a store in Kafka.
func testRightsOnAClaimLog(t *testing.T, s *secured) {
	run := s.newUser(t, "kdedup-on-claim-log", exactlyOnce)
	setup := s.newUser(t, "kdedup-setup-of-claim-log", exactlyOnce)
	d := prepare(t, place{brokers: []string{s.kafka.Addr()}}, exactlyOnce)
	as := func(u *user) *deployment {
		return d.at(place{brokers: d.brokers, kafka: u.kafka,
			store: "{type: kafka, kafka: {index: memory}}"})
	}
	manual := readManual(t)
	acls := func(what string) []acl {
		return manual.acls("Kafka ACLs of "+what, strings.NewReplacer("orders", d.input,
			"User:kdedup-setup", setup.principal(), "User:kdedup", run.principal()))
	}
	s.allow(t, acls("setup")...)
	claims := d.group + ".claims"
	missing(t, as(setup), "topic "+claims+": the Kafka ACLs do not allow ", "setup")
	s.allow(t, acls("setup, with a claim log")...)
	as(setup).command("setup", "--skip-self-test")

	s.allow(t, acls("run, exactly_once")...)
	missing(t, as(run), "topic "+claims+": the Kafka ACLs do not allow ", "validate")
	ofLog := acls("run, with a claim log")
	s.allow(t, ofLog...)
	running := ask(t, as(run))
	for _, right := range ofLog {
		s.without(t, right, func() error {
			return kafka.CheckRightsBeside(t.Context(), running.client,
				[]string{claims, claims + ".scopes"}, kmsg.ACLOperationRead,
				kmsg.ACLOperationWrite, kmsg.ACLOperationDescribeConfigs)
		})
	}
	as(run).command("validate")
	d.produce(2000, 41)
	one := as(run).start("one")
	d.checkAll()
	one.stop()
	if strings.Contains(one.text(), "AUTHORIZATION_FAILED") {
		t.Error("with every right the log says AUTHORIZATION_FAILED")
	}
	id := fmt.Sprintf("%s/%08d", d.input, 0)
	if got := as(run).command("id", "lookup", id); !strings.Contains(got, "yes") {
		t.Errorf("id lookup: %s", got)
	}
}

// user is known by one name to both servers, which begin to know it with no right at all.
type user struct {
	name   string
	secret string
	store  func(keyspace string) string
	kafka  string
}

// newUser logs in to Kafka by password or, with at_least_once, by a certificate.
func (s *secured) newUser(t *testing.T, name, delivery string) *user {
	t.Helper()
	u := &user{name: name, secret: password("user")}
	s.setRole(t, u.role(), u.secret)
	u.store = func(keyspace string) string { return s.store(t, keyspace, u.role(), u.secret) }
	if delivery == exactlyOnce {
		s.setScram(t, name, u.secret)
		u.kafka = s.scram(name, u.secret)
		return u
	}
	cert, key := s.authority.Write(t.TempDir(), testkit.Leaf{Name: name})
	u.kafka = fmt.Sprintf(
		"{brokers: [%q], tls: {enabled: true, ca_file: %q, cert_file: %q, key_file: %q}}",
		s.kafka.Listener(certListener).Listen, s.file("ca.pem"), cert, key)
	return u
}

func (u *user) role() string      { return strings.ReplaceAll(u.name, "-", "_") }
func (u *user) principal() string { return "User:" + u.name }

func (u *user) place(s *secured, keyspace string) place {
	return place{brokers: []string{s.kafka.Addr()}, kafka: u.kafka, store: u.store(keyspace)}
}

// missing runs a command that must fail and say what for.
func missing(t *testing.T, d *deployment, right, command string) {
	t.Helper()
	out, code := d.try(command)
	if code != 1 || !strings.Contains(out, right) {
		t.Errorf("kdedup %s without %s: exit code %d\n%s", command, right, code, out)
	}
}

// asker is what a process of a user asks the brokers at its start.
type asker struct {
	client  *kgo.Client
	topic   config.Topic
	members []string
}

func ask(t *testing.T, d *deployment) asker {
	t.Helper()
	c, err := config.Load(d.config, nil)
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)
	connector, err := kafka.NewConnector(t.Context(), c.Kafka, log)
	if err != nil {
		t.Fatal(err)
	}
	client, err := kgo.NewClient(append(connector.AdminOptions("asker", log),
		kgo.MetadataMinAge(20*time.Millisecond))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return asker{client, c.Topics[0], []string{d.group + "-one-0"}}
}

// inOrderOfSetup: first it looks at everything, then it reads settings, then it creates.
func inOrderOfSetup(a, b acl) int {
	order := []string{"Describe", "Alter", "DescribeConfigs", "Create"}
	return slices.Index(order, a.operation) - slices.Index(order, b.operation)
}

// without takes a right away until that is noticed, and gives it back.
func (s *secured) without(t *testing.T, right acl, question func() error) {
	t.Helper()
	s.forbid(t, right)
	s.stopped(t, right, question)
	s.allow(t, right)
	testkit.Eventually(t, time.Minute, fmt.Sprintf("%s on %s again", right.operation, right.name),
		func() bool {
			return question() == nil
		})
}

// stopped returns when the answer to the question is that a right is missing: an ACL counts a
// moment after it is set.
func (s *secured) stopped(t *testing.T, right acl, question func() error) {
	t.Helper()
	var answer error
	defer func() { t.Logf("without %s on %s: %v", right.operation, right.name, answer) }()
	testkit.Eventually(t, time.Minute, fmt.Sprintf("an error without %s on %s", right.operation,
		right.name), func() bool {
		answer = question()
		return answer != nil &&
			slices.ContainsFunc(strings.Split(answer.Error(), "\n"), right.isMissed)
	})
}

// acl is one right of one user on one resource.
type acl struct {
	principal, kind, name, operation string
	prefixed                         bool
}

// isMissed reports whether a line of an error is about this right.
func (a acl) isMissed(line string) bool {
	resource, allowed, found := strings.Cut(line, ": the Kafka ACLs do not allow ")
	resource = strings.TrimSuffix(resource, " on the cluster of kafka.output")
	_, name, _ := strings.Cut(resource, a.name)
	return found && strings.Contains(resource, a.name) && (a.prefixed || name == "") &&
		strings.Contains(allowed, a.lacking())
}

// lacking is the operation as errors name it. Without Alter on it, a topic cannot even be
// described.
func (a acl) lacking() string {
	if a.operation == "Alter" {
		return "Describe"
	}
	return a.operation
}

func (a acl) builder() *kadm.ACLBuilder {
	operations := map[string]kadm.ACLOperation{
		"Read": kadm.OpRead, "Write": kadm.OpWrite, "Create": kadm.OpCreate, "Alter": kadm.OpAlter,
		"Describe": kadm.OpDescribe, "DescribeConfigs": kadm.OpDescribeConfigs,
		"AlterConfigs": kadm.OpAlterConfigs,
	}
	pattern := kadm.ACLPatternLiteral
	if a.prefixed {
		pattern = kadm.ACLPatternPrefixed
	}
	b := kadm.NewACLs().Allow(a.principal).AllowHosts("*").ResourcePatternType(pattern).Operations(
		operations[a.operation])
	switch a.kind {
	case "--topic":
		return b.Topics(a.name)
	case "--group":
		return b.Groups(a.name)
	default:
		return b.TransactionalIDs(a.name)
	}
}

// allow returns when the broker knows the ACLs: the controller answers a moment before.
func (s *secured) allow(t *testing.T, acls ...acl) {
	t.Helper()
	for _, a := range acls {
		created, err := s.admin.CreateACLs(t.Context(), a.builder())
		if err != nil || len(created) != 1 || created[0].Err != nil {
			t.Fatalf("%+v: %v, %v", a, created, err)
		}
		testkit.Eventually(t, time.Minute, fmt.Sprintf("%s on %s at the broker", a.operation,
			a.name), func() bool {
			known, err := s.admin.DescribeACLs(t.Context(), a.builder())
			return err == nil && len(known) == 1 && len(known[0].Described) == 1
		})
	}
}

func (s *secured) forbid(t *testing.T, a acl) {
	t.Helper()
	deleted, err := s.admin.DeleteACLs(t.Context(), a.builder())
	if err != nil || len(deleted) != 1 || len(deleted[0].Deleted) != 1 {
		t.Fatalf("%+v: %v, %v", a, deleted, err)
	}
}

// manual is docs/security.md, whose commands are what the tests run.
type manual struct {
	t    *testing.T
	text string
}

func readManual(t *testing.T) manual {
	t.Helper()
	text, err := os.ReadFile("../docs/security.md")
	if err != nil {
		t.Fatal(err)
	}
	return manual{t, string(text)}
}

// block returns the lines of the first block of code under a heading.
func (m manual) block(heading string, names *strings.Replacer) []string {
	m.t.Helper()
	_, rest, found := strings.Cut(m.text, "### "+heading+"\n")
	_, rest, opened := strings.Cut(rest, "\n```\n")
	code, _, closed := strings.Cut(rest, "\n```\n")
	if !found || !opened || !closed {
		m.t.Fatalf("docs/security.md has no commands under %q", heading)
	}
	return strings.Split(names.Replace(code), "\n")
}

// acls reads the arguments of kafka-acls.sh.
func (m manual) acls(heading string, names *strings.Replacer) (all []acl) {
	m.t.Helper()
	lines := m.block(heading, names)
	_, principal, found := strings.Cut(lines[0], "--allow-principal ")
	if !found {
		m.t.Fatalf("no principal in %q", lines[0])
	}
	for _, line := range lines[1:] {
		words := strings.Fields(line)
		var operations []string
		var resources []acl
		prefixed := false
		for i := 1; i+1 < len(words); i += 2 {
			switch words[i] {
			case "--operation":
				operations = append(operations, words[i+1])
			case "--resource-pattern-type":
				prefixed = words[i+1] == "prefixed"
			case "--topic", "--group", "--transactional-id":
				resources = append(resources, acl{kind: words[i], name: words[i+1]})
			default:
				m.t.Fatalf("%q: what is %s?", line, words[i])
			}
		}
		for _, operation := range operations {
			for _, r := range resources {
				all = append(all, acl{strings.Trim(principal, `"`), r.kind, r.name, operation,
					prefixed})
			}
		}
	}
	return all
}
