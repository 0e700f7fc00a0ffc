package config

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kdedup/kdedup/dedup/embedded"
)

// minimal is a valid file; line 9 is its last.
const minimal = `instance: kdedup-0
kafka:
  brokers: ["localhost:9092"]
topics:
  - input: orders
    output: orders.clean
    consumer_group: orders-dedup
    message_id: {from: header, name: message-id}
    dead_letter_topic: orders.dlq
`

func write(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kdedup.yaml")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func mustLoad(t *testing.T, content string, env ...string) Config {
	t.Helper()
	c, err := Load(write(t, content), env)
	if err != nil {
		t.Fatalf("Load: %v", err)
	}
	return c
}

// problemsOf is what Load finds wrong, without the file's name; empty when it loads.
func problemsOf(t *testing.T, content string, env ...string) string {
	t.Helper()
	path := write(t, content)
	c, err := Load(path, env)
	if err == nil {
		return ""
	}
	if diff := cmp.Diff(Config{}, c); diff != "" {
		t.Errorf("Load returned a configuration beside its error:\n%s", diff)
	}
	text, ours := strings.CutPrefix(err.Error(), "config "+path+": ")
	if !ours {
		t.Errorf("the error does not begin with the file: %v", err)
	}
	return text
}

func TestLoadFillsInDefaults(t *testing.T) {
	want := valid("orders")
	want.Topics[0].Scope, want.Topics[0].ScopeGroup = "orders", "orders-dedup"
	want.Topics[0].FenceTopic = "orders-dedup.fence"
	if diff := cmp.Diff(want, mustLoad(t, minimal)); diff != "" {
		t.Errorf("Load (-want +got):\n%s", diff)
	}
}

func TestInstanceIsTheHostNameByDefault(t *testing.T) {
	host, err := os.Hostname()
	if err != nil {
		t.Skipf("this machine has no name: %v", err)
	}
	c := mustLoad(t, strings.Replace(minimal, "instance: kdedup-0\n", "", 1))
	if c.Instance != host {
		t.Errorf("instance is %q, want the host name %q", c.Instance, host)
	}
}

func TestDerivedLeavesItsReceiverAlone(t *testing.T) {
	c := valid("orders")
	if d := c.Derived(); d.Topics[0].Scope != "orders" || c.Topics[0].Scope != "" {
		t.Errorf("scope is %q and was %q, want orders and nothing", d.Topics[0].Scope,
			c.Topics[0].Scope)
	}
}

// Each of these is a way in which viper or YAML could change a value on its way.
func TestValuesArriveAsWritten(t *testing.T) {
	tests := []struct {
		name, from, to string
		get            func(c Config) any
		want           any
	}{
		{"dots and upper case in topic names", "input: orders", "input: Shop.Orders.v1",
			func(c Config) any { return c.Topics[0].Input }, "Shop.Orders.v1"},
		{"upper case in header names", "name: message-id", "name: X-Message-ID",
			func(c Config) any { return c.Topics[0].MessageID.Name }, "X-Message-ID"},
		{"backslashes of a JSON path", "from: header, name: message-id", `from: json, path: a\.b.0`,
			func(c Config) any { return c.Topics[0].MessageID.Path }, `a\.b.0`},
		{"duration in hours", "    output", "    ttl: 36h\n    output",
			func(c Config) any { return c.Topics[0].TTL }, 36 * time.Hour},
		{"duration in days", "    output", "    ttl: 7d\n    output",
			func(c Config) any { return c.Topics[0].TTL }, 168 * time.Hour},
		{"duration in days and more", "    output", "    ttl: 1d12h30m\n    output",
			func(c Config) any { return c.Topics[0].TTL }, 36*time.Hour + 30*time.Minute},
		{"duration in quotes", "    output", "    ttl: \"90s\"\n    output",
			func(c Config) any { return c.Topics[0].TTL }, 90 * time.Second},
		{"true", "    output", "    static_membership: true\n    output",
			func(c Config) any { return c.Topics[0].StaticMember }, true},
		{"number with separators", "    output", "    buckets: 1_000\n    output",
			func(c Config) any { return c.Topics[0].Buckets }, 1000},
		{"number in quotes", "    output", "    buckets: \"64\"\n    output",
			func(c Config) any { return c.Topics[0].Buckets }, 64},
		{"key without a value", "    output", "    lanes:\n    output",
			func(c Config) any { return c.Topics[0].Lanes }, 2},
		{"section without a value", "kafka:", "store:\nkafka:",
			func(c Config) any { return c.Store.Type }, StoreKafka},
		{"empty text over a default", "    output", "    scope: \"\"\n    output",
			func(c Config) any { return c.Topics[0].Scope }, "orders"},
		{"list as text with commas", `["localhost:9092"]`, `"a:1, b:2,"`,
			func(c Config) any { return c.Kafka.Brokers }, []string{"a:1", "b:2"}},
		{"alias", "kafka:\n  brokers: [",
			"x-all: &b [\"a:1\", \"b:2\"]\nkafka:\n  brokers: *b\nlog: {level: info} # [",
			func(c Config) any { return c.Kafka.Brokers }, []string{"a:1", "b:2"}},
		{"fingerprint in a word", "    output", "    fingerprint: none\n    output",
			func(c Config) any { return c.Topics[0].Fingerprint.Of }, FingerprintNone},
		{"fingerprint of fields", "    output", "    fingerprint: {ignore: [a, b]}\n    output",
			func(c Config) any { return c.Topics[0].Fingerprint },
			Fingerprint{Of: FingerprintAll, Ignore: []string{"a", "b"}}},
		{"byte order mark", "instance", "\ufeffinstance",
			func(c Config) any { return c.Instance }, "kdedup-0"},
		{"Windows line ends", "instance: kdedup-0\n", "instance: kdedup-0\r\n",
			func(c Config) any { return c.Instance }, "kdedup-0"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			c := mustLoad(t, strings.Replace(minimal, test.from, test.to, 1))
			if diff := cmp.Diff(test.want, test.get(c)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestMergedMappings(t *testing.T) {
	c := mustLoad(t, minimal+`
  - <<: &late {on_missing_id: fail, lanes: 3, ttl: 1h}
    lanes: 4
    input: payments
    output: payments.clean
    consumer_group: payments-dedup
    message_id: {from: key}
  - <<: *late
    input: refunds
    output: refunds.clean
    consumer_group: refunds-dedup
    message_id: {from: key}
`, "KDEDUP_TOPICS_1_TTL=2h")
	got := []any{c.Topics[1].Lanes, c.Topics[1].TTL, c.Topics[2].Lanes, c.Topics[2].TTL,
		c.Topics[2].OnMissingID}
	want := []any{4, 2 * time.Hour, 3, time.Hour, ActionFail}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestLoadRefuses(t *testing.T) {
	const nothing = `2 problems
kafka.brokers: is required, at least one host:port
topics: is required, at least one entry`
	tests := []struct{ name, from, to, want string }{
		{"an empty file", minimal, "", nothing},
		{"a file of comments", minimal, "# later\n---\n", nothing},
		{"a list", minimal, "- a\n", "line 1: must be a mapping of keys to values"},
		{"text", minimal, "orders\n", "line 1: must be a mapping of keys to values"},
		{"two documents", "topics:", "---\ntopics:",
			"must hold one YAML document; remove what follows the second ---"},
		{"YAML that is none", "topics:", "topics: [", "line 4: did not find expected node content"},
		{"a tab", "  brokers", "\tbrokers", "line 3: found character that cannot start any token"},
		{"a key that stands twice", "topics:", "instance: b\ntopics:",
			"instance (line 4): set twice, first in line 1"},
		{"a key that stands twice in an entry", "    output: orders.clean",
			"    output: orders.clean\n    output: b",
			"topics[0].output (line 7): set twice, first in line 6"},
		{"an unknown key", "    output", "    colour: red\n    output",
			"topics[0].colour (line 6): unknown key"},
		{"a key that is nearly right", "    output", "    lane: 3\n    output",
			"topics[0].lane (line 6): unknown key; did you mean lanes?"},
		{"a key with dashes", "    output", "    batch-records: 3\n    output",
			"topics[0].batch-records (line 6): unknown key; did you mean batch_records?"},
		{"a key in upper case", "    output", "    Lanes: 3\n    output",
			"topics[0].Lanes (line 6): unknown key; did you mean lanes?"},
		{"a key of another program", "    output", "    dlq: x\n    output",
			"topics[0].dlq (line 6): unknown key; did you mean dead_letter_topic?"},
		{"a path in place of keys", "topics:", "store.type: cassandra\ntopics:",
			`"store.type" (line 4): unknown key`},
		{"a store without its type", "kafka:", "store: {embedded: {path: data}}\nkafka:",
			"store.type: is required with store.embedded (line 2): the default is kafka; write type: embedded"},
		{"a key of a part", "name: message-id", "nam: message-id",
			"2 problems\ntopics[0].message_id.nam (line 8): unknown key; did you mean name?\n" +
				"topics[0].message_id.name: is required with from: header"},
		{"text for a number", "    output", "    lanes: many\n    output",
			`topics[0].lanes (line 6): must be a whole number, got "many"`},
		{"a fraction for a number", "    output", "    lanes: 2.5\n    output",
			`topics[0].lanes (line 6): must be a whole number, got 2.5`},
		{"a number beyond all bounds", "    output", "    lanes: 99999999999999999999\n    output",
			`topics[0].lanes (line 6): must be a whole number, got 99999999999999999999`},
		{"a list for a number", "    output", "    lanes: [2]\n    output",
			"topics[0].lanes (line 6): must be a whole number, got a list"},
		{"yes for true", "    output", "    static_membership: \"yes\"\n    output",
			`topics[0].static_membership (line 6): must be true or false, got "yes"`},
		{"a number for true", "    output", "    static_membership: 1\n    output",
			"topics[0].static_membership (line 6): must be true or false, got 1"},
		{"a duration without a unit", "    output", "    ttl: 3600\n    output",
			"topics[0].ttl (line 6): must be a duration such as 30s, 168h or 7d, got 3600"},
		{"a duration in weeks", "    output", "    ttl: 1w\n    output",
			`topics[0].ttl (line 6): must be a duration such as 30s, 168h or 7d, got "1w"`},
		{"more than a day after the days", "    output", "    ttl: 1d24h\n    output",
			`topics[0].ttl (line 6): must be a duration such as 30s, 168h or 7d, got "1d24h"`},
		{"too many days", "    output", "    ttl: 200000d\n    output",
			`topics[0].ttl (line 6): must be a duration such as 30s, 168h or 7d, got "200000d"`},
		{"a number for a name", "input: orders", "input: 2024",
			"topics[0].input (line 5): must be text, got a number; put it in quotes"},
		{"a date for a name", "input: orders", "input: 2024-01-01",
			"topics[0].input (line 5): must be text, got a date; put it in quotes"},
		{"a mapping for a name", "input: orders", "input: {a: b}",
			"2 problems\ntopics[0].input.a (line 5): unknown key\n" +
				"topics[0].input (line 5): is required"},
		{"text for a section", "kafka:", "log: loud\nkafka:",
			"log (line 2): must be a mapping with keys such as level, got text"},
		{"a mapping for a list", `["localhost:9092"]`, "{a: b}",
			"kafka.brokers (line 3): must be a list, got a mapping"},
		{"a number in a list", `["localhost:9092"]`, "[9092]",
			"kafka.brokers[0] (line 3): must be text, got a number; put it in quotes"},
		{"a gap in a list", `["localhost:9092"]`, `["localhost:9092", ]`, ""},
		{"null in a list", `["localhost:9092"]`, `["localhost:9092", ~]`,
			"kafka.brokers[1] (line 3): must be text, got nothing"},
		{"an anchor that contains itself", "instance: kdedup-0", "x-a: &a {b: *a}",
			"anchor 'a' value contains itself"},
		{"an unknown anchor", "instance: kdedup-0", "instance: *a",
			"unknown anchor 'a' referenced"},
		{"an unknown key in a merged mapping", "    output", "    <<: {lane: 3}\n    output",
			"topics[0].lane (line 6): unknown key; did you mean lanes?"},
		{"an unknown key in one of several", "    output",
			"    <<: [{lanes: 3}, {x: 1}]\n    output",
			"topics[0].x (line 6): unknown key"},
		{"text in place of a merged mapping", "    output", "    <<: lanes\n    output",
			"topics[0] (line 6): must be a mapping with keys such as input, got text"},
		{"true for a name", "input: orders", "input: true",
			"topics[0].input (line 5): must be text, got true or false; put it in quotes"},
		{"a tag of its own", "input: orders", "input: !shop orders",
			"topics[0].input (line 5): must be text, got a value tagged !shop"},
		{"a value out of range, with its line", "    output", "    lanes: 65\n    output",
			"topics[0].lanes (line 6): must be at most 64, got 65"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got := problemsOf(t, strings.Replace(minimal, test.from, test.to, 1))
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("Load (-want +got):\n%s", diff)
			}
		})
	}
}

// The embedded store was the default: a file that relied on that must not leave its claims behind.
func TestClaimsThatLieInTheOldDefaultStoreAreNotLeftThere(t *testing.T) {
	t.Chdir(t.TempDir())
	text := "kafka: {brokers: [\"localhost:9092\"]}\ntopics:\n  - {input: orders, " +
		"output: orders.clean, consumer_group: orders-dedup, message_id: {from: key}, " +
		"dead_letter_topic: orders.dlq}\n"
	store, err := embedded.Open(embedded.Options{Path: "kdedup-data"})
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	_, _, err = Parse("kdedup.yaml", []byte(text), []string{"KDEDUP_INSTANCE=a"})
	const want = "store.type: is required: ./kdedup-data has the claims of an embedded store"
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Fatalf("got %v, want %s", err, want)
	}
	for _, named := range []string{StoreEmbedded, StoreKafka} {
		c, _, err := Parse("kdedup.yaml", []byte(text),
			[]string{"KDEDUP_INSTANCE=a", "KDEDUP_STORE_TYPE=" + named})
		if err != nil || c.Store.Type != named {
			t.Errorf("with type %s: %v, %s", named, err, c.Store.Type)
		}
	}
}

func TestLoadReportsEverythingAtOnce(t *testing.T) {
	got := problemsOf(t, `shutdown_timeout: soon
kafka:
  brokers: ["${BROKER}"]
store: {type: cassandra, cassandra: {timeot: 9s}}
topics:
  - {input: orders, output: orders, ttl: 0s, message_id: {from: json, path: a..b}}
`, "KDEDUP_LOG_LEVEL=loud")
	want := `10 problems
store.cassandra.timeot (line 4): unknown key; did you mean timeout?
shutdown_timeout (line 1): must be a duration such as 30s, 168h or 7d, got "soon"
kafka.brokers[0] (line 3): environment variable BROKER is not set; set it, or write $${BROKER} for the text ${BROKER}
store.cassandra.hosts: is required, at least one host:port
log.level (KDEDUP_LOG_LEVEL): must be debug, info, warn or error, got "loud"
topics[0].consumer_group: is required
topics[0].dead_letter_topic: is required while on_missing_id is dead_letter; name a topic, or set on_missing_id to forward, drop or fail
topics[0].output (line 6): must differ from input, both are "orders"
topics[0].message_id.path (line 6): has an empty segment: "a..b"
topics[0].ttl (line 6): must be at least 1s, got 0s`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Load (-want +got):\n%s", diff)
	}
}

func TestLoadNamesTheFileThatIsMissing(t *testing.T) {
	_, err := Load("missing.yaml", nil)
	if !errors.Is(err, fs.ErrNotExist) ||
		err.Error() != "read config: open missing.yaml: no such file or directory" {
		t.Errorf("Load: %v", err)
	}
}

func TestMechanismsAreUnderstoodAsKafkaSpellsThem(t *testing.T) {
	for given, want := range map[string]string{
		"PLAIN": SASLPlain, "SCRAM-SHA-256": SASLScram256, "SCRAM-SHA-512": SASLScram512,
		"OAUTHBEARER": SASLOAuthBearer, "AWS_MSK_IAM": SASLAWS,
	} {
		c := Config{Kafka: Kafka{SASL: SASL{Mechanism: given}}}
		c.Kafka.Output.SASL.Mechanism = given
		c = c.Derived()
		if c.Kafka.SASL.Mechanism != want || c.Kafka.Output.SASL.Mechanism != want {
			t.Errorf("%s is read as %q and %q", given, c.Kafka.SASL.Mechanism,
				c.Kafka.Output.SASL.Mechanism)
		}
	}
}
