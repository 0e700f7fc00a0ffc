package config

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestEnvironmentOverridesTheFile(t *testing.T) {
	tests := []struct {
		variable string
		get      func(c Config) any
		want     any
	}{
		{"KDEDUP_INSTANCE=other", func(c Config) any { return c.Instance }, "other"},
		{"KDEDUP_SHUTDOWN_TIMEOUT=1m", func(c Config) any { return c.ShutdownTimeout },
			time.Minute},
		{"KDEDUP_KAFKA_BROKERS=a:1, b:2", func(c Config) any { return c.Kafka.Brokers },
			[]string{"a:1", "b:2"}},
		{"KDEDUP_STORE_CASSANDRA_HOSTS=a,b", func(c Config) any { return c.Store.Cassandra.Hosts },
			[]string{"a", "b"}},
		{"KDEDUP_STORE_CASSANDRA_BATCH_CLAIMS=50", func(c Config) any {
			return c.Store.Cassandra.BatchClaims
		}, 50},
		{"KDEDUP_STORE_CASSANDRA_TLS_ENABLED=true", func(c Config) any {
			return c.Store.Cassandra.TLS.Enabled
		}, true},
		{"KDEDUP_STORE_CASSANDRA_PASSWORD=p=q", func(c Config) any {
			return c.Store.Cassandra.Password
		}, Secret("p=q")},
		{"KDEDUP_TOPICS_0_TTL=24h", func(c Config) any { return c.Topics[0].TTL }, 24 * time.Hour},
		{"KDEDUP_TOPICS_0_OUTPUT=Orders.v2", func(c Config) any { return c.Topics[0].Output },
			"Orders.v2"},
		{"KDEDUP_TOPICS_0_MESSAGE_ID_NAME=x-id", func(c Config) any {
			return c.Topics[0].MessageID.Name
		}, "x-id"},
		{"KDEDUP_TOPICS_0_STATIC_MEMBERSHIP=true", func(c Config) any {
			return c.Topics[0].StaticMember
		}, true},
		{"KDEDUP_INSTANCE=", func(c Config) any { return c.Instance }, "kdedup-0"},
	}
	for _, test := range tests {
		t.Run(test.variable, func(t *testing.T) {
			c := mustLoad(t, minimal, test.variable)
			if diff := cmp.Diff(test.want, test.get(c)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if c.UnknownEnv != nil {
				t.Errorf("unknown variables: %q", c.UnknownEnv)
			}
		})
	}
}

func TestEnvironmentOverridesParts(t *testing.T) {
	composite := strings.Replace(minimal, "{from: header, name: message-id}",
		"{from: composite, parts: [{from: key}, {from: json, path: a}]}", 1)
	c := mustLoad(t, composite, "KDEDUP_TOPICS_0_MESSAGE_ID_PARTS_1_PATH=b.c")
	if got := c.Topics[0].MessageID.Parts[1].Path; got != "b.c" {
		t.Errorf("path is %q, want b.c", got)
	}
}

// Every setting that docs/configuration.md gives a variable must be found by that variable.
func TestEverySettingHasItsVariable(t *testing.T) {
	tree := map[string]any{
		"topics": []any{map[string]any{
			"message_id": map[string]any{"parts": []any{map[string]any{}}}}},
		"metrics": map[string]any{"otlp": map[string]any{"headers": []any{map[string]any{}}}},
		"tracing": map[string]any{"headers": []any{map[string]any{}}},
		"api": map[string]any{"scopes": []any{map[string]any{}},
			"callers": []any{map[string]any{}}},
	}
	var check func(of reflect.Type, path string, depth int)
	check = func(of reflect.Type, path string, depth int) {
		for key, field := range keys(of) {
			inner := join(path, key)
			switch {
			case field.Type.Kind() == reflect.Struct:
				check(field.Type, inner, depth)
			case field.Type.Kind() == reflect.Slice && field.Type.Elem().Kind() == reflect.Struct:
				if depth < 2 {
					check(field.Type.Elem(), inner+"[0]", depth+1)
				}
			default:
				name := EnvName(inner)
				route, known := find(wholeFile, strings.TrimPrefix(name, envPrefix), tree)
				if !known || pathOf(route) != inner {
					t.Errorf("%s leads to %q (known: %t), want %s", name, pathOf(route), known,
						inner)
				}
			}
		}
	}
	check(wholeFile, "", 0)
}

var wholeFile = reflect.TypeFor[Config]()

func TestStrangersInTheEnvironment(t *testing.T) {
	c := mustLoad(t, minimal,
		"HOME=/root", "KDEDUP_SERVICE_HOST=10.0.0.1", "KDEDUP_TOPICS_1_TTL=1h",
		"KDEDUP_TOPICS_00_TTL=1h",
		"KDEDUP_TOPICS_x_TTL=1h", "KDEDUP_TOPICS_-1_TTL=1h", "KDEDUP_TOPICS_0=x", "KDEDUP_TOPICS=x",
		"KDEDUP_STORE=x",
		"KDEDUP_STORE_=x", "KDEDUP_LOGLEVEL=debug", "kdedup_log_level=debug", "KDEDUP_=x",
		"KDEDUP_PORT=secret", "no equals sign")
	want := []string{
		"KDEDUP_", "KDEDUP_LOGLEVEL", "KDEDUP_PORT", "KDEDUP_SERVICE_HOST", "KDEDUP_STORE",
		"KDEDUP_STORE_", "KDEDUP_TOPICS",
		"KDEDUP_TOPICS_-1_TTL", "KDEDUP_TOPICS_0", "KDEDUP_TOPICS_00_TTL", "KDEDUP_TOPICS_1_TTL",
		"KDEDUP_TOPICS_x_TTL",
	}
	if diff := cmp.Diff(want, c.UnknownEnv); diff != "" {
		t.Errorf("UnknownEnv (-want +got):\n%s", diff)
	}
}

func TestErrorsNameTheVariable(t *testing.T) {
	tests := []struct{ variable, want string }{
		{"KDEDUP_TOPICS_0_LANES=many",
			`topics[0].lanes (KDEDUP_TOPICS_0_LANES): must be a whole number, got "many"`},
		{"KDEDUP_TOPICS_0_LANES=0",
			"topics[0].lanes (KDEDUP_TOPICS_0_LANES): must be at least 1, got 0"},
		{`KDEDUP_KAFKA_BROKERS="kafka-1:9092"`, `kafka.brokers[0] (KDEDUP_KAFKA_BROKERS): must ` +
			`be host:port or a host, got "\"kafka-1:9092\""`},
		{`KDEDUP_KAFKA_BROKERS=a:1,[b:2]`, `kafka.brokers[1] (KDEDUP_KAFKA_BROKERS): must ` +
			`be host:port or a host, got "[b:2]"`},
		{`KDEDUP_SERVER_HOSTS='a'`, `server.hosts[0] (KDEDUP_SERVER_HOSTS): must be a ` +
			`host name without a port, got "'a'"`},
		{"KDEDUP_LOG_LEVEL=${HOME}",
			`log.level (KDEDUP_LOG_LEVEL): must be debug, info, warn or error, got "${HOME}"`},
		{"KDEDUP_KAFKA_SASL_PASSWORD=file:/missing", "kafka.sasl.password " +
			"(KDEDUP_KAFKA_SASL_PASSWORD): read secret: open /missing: no such file or directory"},
	}
	for _, test := range tests {
		t.Run(test.variable, func(t *testing.T) {
			if diff := cmp.Diff(
				test.want, problemsOf(t, minimal, test.variable, "HOME=/root"),
			); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestVariablesInValues(t *testing.T) {
	tests := []struct{ name, value, want string }{
		{"alone", "${A}", "alpha"},
		{"within text", "x-${A}-${B}", "x-alpha-beta"},
		{"set to nothing", "x${EMPTY}y", "xy"},
		{"not replaced in what was put in", "${NESTED}", "${A}"},
		{"escaped", "$${A}", "${A}"},
		{"escaped beside one that is not", "$${A}${B}", "${A}beta"},
		{"a dollar sign", "a$b$", "a$b$"},
	}
	env := []string{"A=alpha", "B=beta", "EMPTY=", "NESTED=${A}"}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			file := strings.Replace(minimal, "name: message-id", "name: '"+test.value+"'", 1)
			if got := mustLoad(t, file, env...).Topics[0].MessageID.Name; got != test.want {
				t.Errorf("%s became %q, want %q", test.value, got, test.want)
			}
		})
	}
}

func TestVariablesOfEveryType(t *testing.T) {
	file := strings.Replace(minimal, `["localhost:9092"]`, "${BROKERS}", 1) +
		"    lanes: ${LANES}\n    ttl: ${DAYS}d\n    static_membership: ${STATIC}\n"
	c := mustLoad(t, file, "BROKERS=a:1,b:2", "LANES=3", "DAYS=2", "STATIC=true")
	got := []any{c.Kafka.Brokers, c.Topics[0].Lanes, c.Topics[0].TTL, c.Topics[0].StaticMember}
	if diff := cmp.Diff([]any{[]string{"a:1", "b:2"}, 3, 48 * time.Hour, true}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestVariablesThatCannotBeReplaced(t *testing.T) {
	const noName = "has ${ without the name of an environment variable and }; write $${ for the text ${"
	tests := []struct{ value, want string }{
		{"${NOPE}", "environment variable NOPE is not set; set it, or write $${NOPE} for the " +
			"text ${NOPE}"},
		{"${}", noName},
		{"${A", noName},
		{"${A-b}", noName},
		{"${1}", noName},
	}
	for _, test := range tests {
		t.Run(test.value, func(t *testing.T) {
			file := strings.Replace(minimal, "name: message-id", "name: '"+test.value+"'", 1)
			want := "topics[0].message_id.name (line 8): " + test.want
			if diff := cmp.Diff(want, problemsOf(t, file, "A=alpha")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

const twoEntries = `kafka: {brokers: ["localhost:9092"]}
topics:
  - {input: orders, output: o.clean, consumer_group: o, message_id: {from: key}, dead_letter_topic: o.dlq}
  - {input: "${TEAM}.payments-v1", output: p.clean, consumer_group: p, message_id: {from: key}, dead_letter_topic: p.dlq}
`

func TestAnOverrideMayNameItsInput(t *testing.T) {
	c := mustLoad(t, twoEntries, "TEAM=eu", "KDEDUP_TOPICS_ORDERS_TTL=30d",
		"KDEDUP_TOPICS_EU_PAYMENTS_V1_MESSAGE_ID_FROM=value_hash",
		"KDEDUP_TOPICS_1_INPUT=refunds", "KDEDUP_TOPICS_REFUNDS_TTL=1h")
	if c.Topics[0].TTL != 30*24*time.Hour || c.Topics[1].TTL != time.Hour {
		t.Errorf("ttl %v and %v", c.Topics[0].TTL, c.Topics[1].TTL)
	}
	// The file's input has given way to another one, and so its name means nothing.
	if diff := cmp.Diff([]string{"KDEDUP_TOPICS_EU_PAYMENTS_V1_MESSAGE_ID_FROM"},
		c.UnknownEnv); diff != "" {
		t.Errorf("unknown (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]string{"KDEDUP_TOPICS_1_INPUT": "refunds"},
		c.NumberedEnv); diff != "" {
		t.Errorf("numbered (-want +got):\n%s", diff)
	}
	moved := strings.Replace(twoEntries, "topics:\n", "topics:\n  - {input: new, output: n.clean, "+
		"consumer_group: n, message_id: {from: key}, dead_letter_topic: n.dlq}\n", 1)
	c = mustLoad(t, moved, "TEAM=eu", "KDEDUP_TOPICS_ORDERS_TTL=30d")
	if c.Topics[0].TTL == 30*24*time.Hour || c.Topics[1].TTL != 30*24*time.Hour {
		t.Errorf("behind another entry: ttl %v and %v", c.Topics[0].TTL, c.Topics[1].TTL)
	}
}

func TestAnOverrideThatMayMeanTwoEntriesIsRefused(t *testing.T) {
	alike := strings.Replace(twoEntries, "${TEAM}.payments-v1", "ORDERS", 1)
	for _, c := range []struct {
		text, variable, want string
	}{
		{alike, "KDEDUP_TOPICS_ORDERS_TTL=1h", "KDEDUP_TOPICS_ORDERS_TTL: may mean " +
			"topics[0].ttl or topics[1].ttl; write it into the file, or name the entry by its " +
			"number"},
		{twoEntries, "KDEDUP_TOPICS_0_TTL=1h KDEDUP_TOPICS_ORDERS_TTL=2h", "topics[0].ttl " +
			"(KDEDUP_TOPICS_ORDERS_TTL): is set by KDEDUP_TOPICS_0_TTL, too; unset one of the two"},
		{twoEntries, "KDEDUP_TOPICS_ORDERS_TTL=soon", "topics[0].ttl (KDEDUP_TOPICS_ORDERS_TTL): " +
			`must be a duration such as 30s, 168h or 7d, got "soon"`},
	} {
		if got := problemsOf(t, c.text, append(strings.Fields(c.variable),
			"TEAM=eu")...); got != c.want {
			t.Errorf("%s: %s", c.variable, got)
		}
	}
}

// Whatever a topic is called, the variable that kdedup proposes finds its entry and no other.
func TestTheProposedNameOfAnOverrideLeadsToItsEntry(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Log("seed", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	const letters = "abcXYZ019._-"
	for range 200 {
		var inputs []string
		seen := map[string]bool{}
		text := "kafka: {brokers: [a]}\ntopics:\n"
		for len(inputs) < 5 {
			input := "t"
			for range random.IntN(20) {
				input += string(letters[random.IntN(len(letters))])
			}
			if seen[inVariable(input)] {
				continue
			}
			seen[inVariable(input)] = true
			text += fmt.Sprintf("  - {input: %q, output: o%d, consumer_group: g%d, "+
				"message_id: {from: key}, on_missing_id: drop}\n", input, len(inputs), len(inputs))
			inputs = append(inputs, input)
		}
		at := random.IntN(len(inputs))
		name := NamedEnv(EnvName(fmt.Sprintf("topics[%d].batch_records", at)), inputs[at])
		c := mustLoad(t, text, name+"=77")
		for i, topic := range c.Topics {
			if (topic.BatchRecords == 77) != (i == at) {
				t.Fatalf("%s of %q: entry %d has %d", name, inputs, i, topic.BatchRecords)
			}
		}
	}
}
