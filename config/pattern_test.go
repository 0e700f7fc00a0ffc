package config

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// patterned reads a file with these entries.
func patterned(t *testing.T, entries ...string) Config {
	t.Helper()
	c, err := readPatterned(entries...)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func readPatterned(entries ...string) (Config, error) {
	text := "instance: a\nkafka: {brokers: [b]}\ntopics:\n"
	for _, entry := range entries {
		text += "  - {message_id: {from: key}, on_missing_id: drop, " + entry + "}\n"
	}
	c, _, err := Parse("kdedup.yaml", []byte(text), nil)
	return c, err
}

const tenants = `input: {pattern: 'tenant-.*\.orders'}, output: "{topic}.clean", ` +
	`consumer_group: "{topic}-dedup"`

func inputsOf(c Config) (names []string) {
	for _, t := range c.Topics {
		names = append(names, t.Input)
	}
	return names
}

func TestAPatternBecomesAnEntryForEachTopic(t *testing.T) {
	c := patterned(t, "input: z, output: z.clean, consumer_group: z", tenants+
		`, duplicates_topic: "dup.{topic}", dead_letter_topic: "{topic}.dlq", scope: all, `+
		`scope_group: "shop-{topic}"`)
	expanded, errs := c.Expand([]string{"tenant-b.orders", "other", "tenant-a.orders", "z"})
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	if diff := cmp.Diff([]string{"z", "tenant-a.orders", "tenant-b.orders"},
		inputsOf(expanded)); diff != "" {
		t.Error(diff)
	}
	want := c.Topics[1]
	want.Input, want.Pattern, want.Output = "tenant-a.orders", "", "tenant-a.orders.clean"
	want.ConsumerGroup, want.FenceTopic = "tenant-a.orders-dedup", "tenant-a.orders-dedup.fence"
	want.DuplicatesTopic, want.DeadLetterTopic = "dup.tenant-a.orders", "tenant-a.orders.dlq"
	want.ScopeGroup = "shop-tenant-a.orders"
	want.Origin = Origin{"topics[1] (tenant-a.orders)", true}
	if diff := cmp.Diff(want, expanded.Topics[1]); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if got := expanded.Topics[0].Origin; got != (Origin{Path: "topics[0]"}) {
		t.Errorf("the exact entry comes from %v", got)
	}
}

func TestThePatternMayComeFromTheEnvironment(t *testing.T) {
	text := "instance: a\nkafka: {brokers: [b]}\ntopics: [{output: '{topic}.c', " +
		"consumer_group: '{topic}.g', message_id: {from: key}, on_missing_id: drop}]\n"
	c, places, err := Parse("f", []byte(text), []string{`KDEDUP_TOPICS_0_INPUT_PATTERN=a+`})
	if err != nil {
		t.Fatal(err)
	}
	if got := places["topics[0].input.pattern"]; got != "KDEDUP_TOPICS_0_INPUT_PATTERN" {
		t.Errorf("it comes from %q", got)
	}
	if _, found := c.EntryOf("aaa"); !found {
		t.Error("aaa has no entry")
	}
	if _, found := c.EntryOf("aab"); found {
		t.Error("aab has an entry: a pattern must match the whole name")
	}
}

// However patterns and templates look, what an entry writes never becomes an input.
// Each lane has connections of its own, and a pattern has many topics.
func TestTopicsOfAPatternHaveOneLaneUnlessTheFileSaysOtherwise(t *testing.T) {
	const rest = "message_id: {from: key}, on_missing_id: drop"
	const outputs = "output: '{topic}.c', consumer_group: '{topic}.g', "
	cases := []struct {
		name, entry, variable string
		want                  int
	}{
		{"a topic", "input: aaa, output: c, consumer_group: g, ", "", 2},
		{"a pattern", "input: {pattern: a+}, " + outputs, "", 1},
		{"a pattern from the environment", outputs, "KDEDUP_TOPICS_0_INPUT_PATTERN=a+", 1},
		{"lanes in the file", "input: {pattern: a+}, lanes: 3, " + outputs, "", 3},
		{"lanes from the environment", "input: {pattern: a+}, " + outputs,
			"KDEDUP_TOPICS_0_LANES=2", 2},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			var env []string
			if c.variable != "" {
				env = []string{c.variable}
			}
			got, _, err := Parse("f", []byte("instance: a\nkafka: {brokers: [b]}\n"+
				"topics: [{"+c.entry+rest+"}]\n"), env)
			if err != nil {
				t.Fatal(err)
			}
			if entry, _ := got.EntryOf("aaa"); entry.Lanes != c.want {
				t.Errorf("got %d lanes, want %d", entry.Lanes, c.want)
			}
		})
	}
}

func TestWhatAnEntryWritesIsNoInput(t *testing.T) {
	c := patterned(t, "input: all, output: tenant-all.orders, consumer_group: all, "+
		"duplicates_topic: tenant-dup.orders",
		`input: {pattern: 'tenant-.*'}, output: "{topic}.clean", consumer_group: "{topic}-dedup", `+
			`duplicates_topic: "tenant-{topic}", dead_letter_topic: "{topic}.{topic}"`)
	expanded, errs := c.Expand([]string{"tenant-all.orders", "tenant-dup.orders", "tenant-a",
		"tenant-a.clean", "tenant-a-dedup.fence", "tenant-tenant-a", "tenant-a.tenant-a",
		"tenant-a-dedup.redrive", "tenant-gone.clean", "tenant-gone.clean.clean",
		"tenant-a.tenant-b"})
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	want := []string{"all", "tenant-a", "tenant-a.tenant-b"}
	if diff := cmp.Diff(want, inputsOf(expanded)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestAnEntryThatNamesItsInputWins(t *testing.T) {
	c := patterned(t, tenants, "input: tenant-a.orders, output: a.clean, consumer_group: a, ttl: 1h")
	expanded, errs := c.Expand([]string{"tenant-a.orders", "tenant-b.orders"})
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	if diff := cmp.Diff([]string{"tenant-b.orders", "tenant-a.orders"},
		inputsOf(expanded)); diff != "" {
		t.Error(diff)
	}
	if own, _ := c.EntryOf("tenant-a.orders"); own.Output != "a.clean" {
		t.Errorf("got %+v", own)
	}
}

func TestATopicThatCannotHaveAnEntryIsLeftOutAndNamed(t *testing.T) {
	long := "tenant-" + strings.Repeat("x", 230) + ".orders"
	for _, c := range []struct {
		name    string
		entries []string
		topics  []string
		left    []string
		want    string
	}{
		{"two patterns match it", []string{tenants, `input: {pattern: '.*-a\..*'}, ` +
			`output: "{topic}.new", consumer_group: "{topic}-new"`},
			[]string{"tenant-a.orders", "tenant-b.orders"}, []string{"tenant-b.orders"},
			"topics[1].input.pattern: matches tenant-a.orders, as the pattern of topics[0] does; " +
				"change one of them, or give the topic an entry of its own"},
		{"its output would have too long a name", []string{tenants},
			[]string{long, "tenant-b.orders"}, []string{"tenant-b.orders"},
			"topics[0] (" + long + ").output: must be a topic name"},
		{"two templates make one output", []string{
			`input: {pattern: '[ab]'}, output: "{topic}.x.x", consumer_group: "{topic}-1"`,
			`input: {pattern: '[ab].x'}, output: "{topic}.x", consumer_group: "{topic}-2"`,
		}, []string{"a", "a.x", "b"}, []string{"a", "b"},
			`topics[1] (a.x).output: must differ from the topics of topics[0] (a), ` +
				`both are "a.x.x"; change one of the templates`},
		{"two templates make one group", []string{
			`input: {pattern: '[ab]'}, output: "1.{topic}", consumer_group: "{topic}.x"`,
			`input: {pattern: '[ab].x'}, output: "2.{topic}", consumer_group: "{topic}"`,
		}, []string{"a", "a.x", "b"}, []string{"a", "b"},
			`topics[1] (a.x).consumer_group: must differ from that of topics[0] (a)`},
		{"its fence is the output of an entry", []string{tenants,
			"input: z, output: tenant-a.orders-dedup.fence, consumer_group: z"},
			[]string{"tenant-a.orders"}, []string{"z"},
			`topics[0] (tenant-a.orders).fence_topic: must differ from output of topics[1]`},
		{"it shares claims and has another ttl", []string{
			`input: {pattern: '[ab]'}, output: "{topic}.1", consumer_group: "{topic}-1", ` +
				`scope: s, scope_group: "g.{topic}"`,
			`input: z, output: z.1, consumer_group: z-1, scope: s, scope_group: g.a, ttl: 1h`},
			[]string{"a", "b"}, []string{"b", "z"},
			"topics[0] (a).ttl: must equal that of topics[1]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			expanded, errs := patterned(t, c.entries...).Expand(c.topics)
			if diff := cmp.Diff(c.left, inputsOf(expanded)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if len(errs) == 0 || !strings.Contains(fmt.Sprint(errs), c.want) {
				t.Errorf("got %v, want %s", errs, c.want)
			}
		})
	}
}

func TestAPatternIsChecked(t *testing.T) {
	for _, c := range []struct{ entry, want string }{
		{`input: {pattern: 'a('}, output: "{topic}.c", consumer_group: "{topic}"`,
			"topics[0].input.pattern (line 4): must be a regular expression: error parsing regexp: " +
				"missing closing ): `a(`"},
		{`input: {pattern: a}, output: c, consumer_group: "{topic}"`,
			"topics[0].output (line 4): must have {topic} in it, because a pattern stands for many " +
				`topics, got "c"; write {topic} where the input's name belongs`},
		{`input: {pattern: a}, output: "{topic}.c", consumer_group: g`,
			"topics[0].consumer_group (line 4): must have {topic} in it"},
		{`input: {pattern: a}, output: "{topic}.c", consumer_group: "{topic}", fence_topic: f`,
			"topics[0].fence_topic (line 4): must have {topic} in it"},
		{`input: {pattern: a}, output: "{topic}.c", consumer_group: "{topic}", scope: s, ` +
			`scope_group: g`, "topics[0].scope (line 4): must have {topic} in it, or scope_group must"},
		{`input: {pattern: a}, output: "{topic}", consumer_group: "{topic}"`,
			"topics[0].output (line 4): must differ from input"},
		{`input: {pattern: a}, output: "{topic} c", consumer_group: "{topic}"`,
			"topics[0].output (line 4): must be a topic name"},
		{`input: {pattern: a, patern: b}, output: "{topic}.c", consumer_group: "{topic}"`,
			"topics[0].input.patern (line 4): unknown key; did you mean pattern?"},
		{`input: {}, output: "{topic}.c", consumer_group: g`, "topics[0].input (line 4): is required"},
		{`input: a, "input.pattern": b, output: c, consumer_group: g`, "unknown key"},
	} {
		if _, err := readPatterned(c.entry); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s\ngot  %v\nwant %s", c.entry, err, c.want)
		}
	}
}

// Expand is called again and again, with the topics that its own entries have made among those of
// the cluster. Whatever stands in the file, that changes nothing, and what it leaves is valid.
func TestExpandingAgainWithAllThatWasMadeChangesNothing(t *testing.T) {
	pick := func(r *rand.Rand, from ...string) string { return from[r.IntN(len(from))] }
	for seed := range uint64(2000) {
		r := rand.New(rand.NewPCG(seed, 0))
		var entries []string
		for range 1 + r.IntN(3) {
			pattern := pick(r, ".*", "[ab].*", "a.+", ".*[.]x", "(a|b)([.]x)?")
			entries = append(entries, fmt.Sprintf(
				"input: {pattern: '%s'}, output: %q, consumer_group: %q, duplicates_topic: %q", pattern,
				pick(r, "{topic}.x", "x.{topic}", "a.{topic}", "{topic}{topic}"),
				pick(r, "{topic}", "g.{topic}", "{topic}.g"),
				pick(r, "{topic}.dup", "a{topic}", "x.{topic}.x")))
		}
		if r.IntN(2) == 0 {
			entries = append(entries, "input: "+pick(r, "a", "a.x", "b")+
				", output: "+pick(r, "out", "b.x")+", consumer_group: exact")
		}
		c, err := readPatterned(entries...)
		if err != nil {
			t.Fatalf("%q: %v", entries, err)
		}
		topics := []string{"a", "b", "a.x", "ab", "ab.x.x", "__consumer_offsets", "xx"}
		first, _ := c.Expand(topics)
		made := slices.Clone(topics)
		for _, topic := range first.Topics {
			for _, role := range topic.roles() {
				made = append(made, role.name)
			}
		}
		r.Shuffle(len(made), func(i, j int) { made[i], made[j] = made[j], made[i] })
		second, _ := c.Expand(made)
		if diff := cmp.Diff(inputsOf(first), inputsOf(second)); diff != "" {
			t.Fatalf("%q (-first +second):\n%s", entries, diff)
		}
		if len(first.Topics) == 0 {
			continue
		}
		if err := first.Validate(); err != nil {
			t.Fatalf("%q: %v", entries, err)
		}
		for _, of := range first.Topics {
			for _, other := range first.Topics {
				if of.Origin.Pattern && slices.ContainsFunc(other.written(),
					func(r role) bool { return r.name == of.Input }) {
					t.Fatalf("%q: %s is written by %s", entries, of.Input, other.Origin.Path)
				}
			}
		}
	}
}
