package config

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// topic turns a change of the only entry into a change of the configuration.
func topic(set func(*Topic)) func(*Config) {
	return func(c *Config) { set(&c.Topics[0]) }
}

const notATopicName = `must be a topic name (1 to 249 of letters, digits, '.', '_', '-'; not . or ..), got `

func TestTopicNameRules(t *testing.T) {
	testRules(t, []string{"orders"}, []rule{
		{"no input", topic(func(t *Topic) { t.Input = "" }), "topics[0].input: is required"},
		{"no output", topic(func(t *Topic) { t.Output = "" }), "topics[0].output: is required"},
		{"no consumer_group", topic(func(t *Topic) { t.ConsumerGroup = "" }),
			"topics[0].consumer_group: is required"},
		{"input with a slash", topic(func(t *Topic) { t.Input = "a/b" }),
			"topics[0].input: " + notATopicName + `"a/b"`},
		{"output .", topic(func(t *Topic) { t.Output = "." }),
			"topics[0].output: " + notATopicName + `"."`},
		{"duplicates_topic ..", topic(func(t *Topic) { t.DuplicatesTopic = ".." }),
			"topics[0].duplicates_topic: " + notATopicName + `".."`},
		{"dead_letter_topic with a space", topic(func(t *Topic) { t.DeadLetterTopic = "a b" }),
			"topics[0].dead_letter_topic: " + notATopicName + `"a b"`},
		{"fence_topic with an accent", topic(func(t *Topic) { t.FenceTopic = "é" }),
			"topics[0].fence_topic: " + notATopicName + `"é"`},
		{"longest name", topic(func(t *Topic) { t.Output = strings.Repeat("a", 249) }), ""},
		{"name too long", topic(func(t *Topic) { t.Output = strings.Repeat("a", 250) }),
			"topics[0].output: " + notATopicName + `"` + strings.Repeat("a", 250) + `"`},
		{"consumer group that makes no fence topic", topic(func(t *Topic) {
			t.ConsumerGroup = "a b"
		}),
			"topics[0].fence_topic: " + notATopicName + `"a b.fence"`},
		{"longest consumer group with an index in files", topic(func(t *Topic) {
			t.ConsumerGroup = strings.Repeat("g", 127)
		}), ""},
		{"consumer group that is too long for an index in files", topic(func(t *Topic) {
			t.ConsumerGroup = strings.Repeat("g", 128)
		}), "topics[0].consumer_group: must be at most 127 bytes where the index of a claim log " +
			"is in files, got 128; choose a shorter one, or index: memory beside store.kafka.path"},
		{"consumer group with a fence topic of its own", topic(func(t *Topic) {
			t.ConsumerGroup, t.FenceTopic = "a b", "f"
		}), ""},
	})
}

func TestTopicsOfOneEntryDiffer(t *testing.T) {
	testRules(t, []string{"orders"}, []rule{
		{"output is the input", topic(func(t *Topic) { t.Output = "orders" }),
			`topics[0].output: must differ from input, both are "orders"`},
		{"duplicates_topic is the input", topic(func(t *Topic) { t.DuplicatesTopic = "orders" }),
			`topics[0].duplicates_topic: must differ from input, both are "orders"`},
		{"duplicates_topic is the output", topic(func(t *Topic) {
			t.DuplicatesTopic = "orders.clean"
		}),
			`topics[0].duplicates_topic: must differ from output, both are "orders.clean"`},
		{"dead_letter_topic is the input", topic(func(t *Topic) { t.DeadLetterTopic = "orders" }),
			`topics[0].dead_letter_topic: must differ from input, both are "orders"`},
		{"dead_letter_topic is the output", topic(func(t *Topic) {
			t.DeadLetterTopic = "orders.clean"
		}),
			`topics[0].dead_letter_topic: must differ from output, both are "orders.clean"`},
		{"dead_letter_topic is the duplicates_topic", topic(func(t *Topic) {
			t.DuplicatesTopic = "orders.dlq"
		}),
			`topics[0].dead_letter_topic: must differ from duplicates_topic, both are "orders.dlq"`},
		{"fence_topic is the input", topic(func(t *Topic) { t.FenceTopic = "orders" }),
			`topics[0].fence_topic: must differ from input, both are "orders"`},
		{"fence_topic is the output", topic(func(t *Topic) { t.FenceTopic = "orders.clean" }),
			`topics[0].fence_topic: must differ from output, both are "orders.clean"`},
		{"fence_topic is the duplicates_topic", topic(func(t *Topic) {
			t.FenceTopic, t.DuplicatesTopic = "x", "x"
		}),
			`topics[0].fence_topic: must differ from duplicates_topic, both are "x"`},
		{"fence_topic is the dead_letter_topic", topic(func(t *Topic) {
			t.FenceTopic = "orders.dlq"
		}),
			`topics[0].fence_topic: must differ from dead_letter_topic, both are "orders.dlq"`},
	})
}

func TestDeadLetterTopicRules(t *testing.T) {
	without := func(missing, conflict Action) func(*Config) {
		return topic(func(t *Topic) {
			t.DeadLetterTopic, t.OnMissingID, t.OnConflict = "", missing, conflict
		})
	}
	testRules(t, []string{"orders"}, []rule{
		{"on_missing_id needs it", without(ActionDeadLetter, ActionDrop),
			"topics[0].dead_letter_topic: is required while on_missing_id is dead_letter; name a " +
				"topic, or set on_missing_id to forward, drop or fail"},
		{"on_conflict needs it", without(ActionFail, ActionDeadLetter),
			"topics[0].dead_letter_topic: is required while on_conflict is dead_letter; name a " +
				"topic, or set on_conflict to drop or forward"},
		{"nothing needs it", without(ActionFail, ActionForward), ""},
	})
}

func TestTopicChoices(t *testing.T) {
	testRules(t, []string{"orders"}, []rule{
		{"delivery", topic(func(t *Topic) { t.Delivery = "exactly-once" }),
			`topics[0].delivery: must be exactly_once or at_least_once, got "exactly-once"; did you mean exactly_once?`},
		{"mode", topic(func(t *Topic) { t.Mode = "off" }),
			`topics[0].mode: must be enforce, annotate or observe, got "off"`},
		{"on_tombstone", topic(func(t *Topic) { t.OnTombstone = "forwards" }),
			`topics[0].on_tombstone: must be as_any, forward, dead_letter or drop, got "forwards"; did you mean forward?`},
		{"on_tombstone fails nothing", topic(func(t *Topic) { t.OnTombstone = ActionFail }),
			`topics[0].on_tombstone: must be as_any, forward, dead_letter or drop, got "fail"`},
		{"on_tombstone needs a topic", topic(func(t *Topic) {
			t.DeadLetterTopic, t.OnMissingID, t.OnTombstone = "", ActionDrop, ActionDeadLetter
		}),
			"topics[0].dead_letter_topic: is required while on_tombstone is dead_letter; name a topic, or set on_tombstone to as_any, forward or drop"},
		{"on_missing_id", topic(func(t *Topic) { t.OnMissingID = "block" }),
			`topics[0].on_missing_id: must be dead_letter, forward, drop or fail, got "block"`},
		{"on_conflict", topic(func(t *Topic) { t.OnConflict = "fail" }),
			`topics[0].on_conflict: must be drop, forward or dead_letter, got "fail"`},
		{"on_replay", topic(func(t *Topic) { t.OnReplay = "dead_letter" }),
			`topics[0].on_replay: must be drop or forward, got "dead_letter"`},
		{"on_skip", topic(func(t *Topic) { t.OnSkip = "drop" }),
			`topics[0].on_skip: must be reread or accept, got "drop"`},
		{"on_store_outage", topic(func(t *Topic) { t.OnStoreOutage = "drop" }),
			`topics[0].on_store_outage: must be block or forward, got "drop"`},
		{"compression", topic(func(t *Topic) { t.Compression = "brotli" }),
			`topics[0].compression: must be input, none, gzip, snappy, lz4 or zstd, got "brotli"`},
		{"ttl_from", topic(func(t *Topic) { t.TTLFrom = "newest" }),
			`topics[0].ttl_from: must be first or last, got "newest"`},
		{"partitioner", topic(func(t *Topic) { t.Partitioner = "bykey" }),
			`topics[0].partitioner: must be preserve or by_key, got "bykey"; did you mean by_key?`},
		{"start", topic(func(t *Topic) { t.Start = "newest" }),
			`topics[0].start: must be earliest or latest, got "newest"`},
		{"group_protocol", topic(func(t *Topic) { t.GroupProtocol = "" }),
			`topics[0].group_protocol: must be classic or consumer, got ""`},
	})
}

func TestATTLEndsWithinCassandrasTime(t *testing.T) {
	p := &problems{}
	checkCassandraTTL(p, "topics[0].ttl", time.Until(cassandraEnd)-25*time.Hour, 0)
	if len(p.found) > 0 {
		t.Errorf("got %v", p.err())
	}
	checkCassandraTTL(p, "topics[0].ttl", time.Until(cassandraEnd)+time.Hour, 0)
	if err := p.err(); err == nil || !strings.Contains(err.Error(),
		"topics[0].ttl: must be at most") || !strings.Contains(err.Error(), "2038-01-19") {
		t.Errorf("got %v", err)
	}
}

func TestTopicLimits(t *testing.T) {
	testRules(t, []string{"orders"}, []rule{
		{"no lanes", topic(func(t *Topic) { t.Lanes = 0 }),
			"topics[0].lanes: must be at least 1, got 0"},
		{"too many lanes", topic(func(t *Topic) { t.Lanes = 65 }),
			"topics[0].lanes: must be at most 64, got 65"},
		{"ttl too short", topic(func(t *Topic) { t.TTL = 0 }),
			"topics[0].ttl: must be at least 1s, got 0s"},
		{"ttl of 20 years", topic(func(t *Topic) { t.TTL = 630720000 * time.Second }), ""},
		{"ttl too long", topic(func(t *Topic) { t.TTL = 630720001 * time.Second }),
			"topics[0].ttl: must be at most 175200h0m0s, got 175200h0m1s"},
		{"ttl with a fraction", topic(func(t *Topic) { t.TTL = 1500 * time.Millisecond }),
			"topics[0].ttl: must be whole seconds, got 1.5s"},
		{"no buckets", topic(func(t *Topic) { t.Buckets = 0 }),
			"topics[0].buckets: must be at least 1, got 0"},
		{"too many buckets", topic(func(t *Topic) { t.Buckets = 1_000_001 }),
			"topics[0].buckets: must be at most 1000000, got 1000001"},
		{"outage_grace too short", topic(func(t *Topic) { t.OutageGrace = 99 * time.Millisecond }),
			"topics[0].outage_grace: must be at least 100ms, got 99ms"},
		{"empty batches", topic(func(t *Topic) { t.BatchRecords = 0 }),
			"topics[0].batch_records: must be at least 1, got 0"},
		{"batches too large", topic(func(t *Topic) { t.BatchRecords = 100_001 }),
			"topics[0].batch_records: must be at most 100000, got 100001"},
		{"batch_bytes too small", topic(func(t *Topic) { t.BatchBytes = 1<<16 - 1 }),
			"topics[0].batch_bytes: must be at least 64KiB, got 65535"},
		{"batch_bytes too large", topic(func(t *Topic) { t.BatchBytes = 1<<30 + 1 }),
			"topics[0].batch_bytes: must be at most 1GiB, got 1073741825"},
		{"unpacked_bytes too small", topic(func(t *Topic) { t.UnpackedBytes = 1<<20 - 1 }),
			"topics[0].unpacked_bytes: must be at least 1MiB, got 1048575"},
		{"unpacked_bytes too large", topic(func(t *Topic) { t.UnpackedBytes = 1<<30 + 1 }),
			"topics[0].unpacked_bytes: must be at most 1GiB, got 1073741825"},
		{"fetch_bytes too small", topic(func(t *Topic) { t.FetchBytes = 1<<16 - 1 }),
			"topics[0].fetch_bytes: must be at least 64KiB, got 65535"},
		{"fetch_bytes too large", topic(func(t *Topic) { t.FetchBytes = 1<<30 + 1 }),
			"topics[0].fetch_bytes: must be at most 1GiB, got 1073741825"},
		{"transaction_timeout too short", topic(func(t *Topic) {
			t.TransactionTimeout = 4 * time.Second
		}),
			"topics[0].transaction_timeout: must be at least 5s, got 4s"},
		{"transaction_timeout too long", topic(func(t *Topic) {
			t.TransactionTimeout = 16 * time.Minute
		}),
			"topics[0].transaction_timeout: must be at most 15m0s, got 16m0s"},
		{"session_timeout too short", topic(func(t *Topic) { t.SessionTimeout = 5 * time.Second }),
			"topics[0].session_timeout: must be at least 6s, got 5s"},
		{"session_timeout too long", topic(func(t *Topic) { t.SessionTimeout = 31 * time.Minute }),
			"topics[0].session_timeout: must be at most 30m0s, got 31m0s"},
	})
}

func TestMessageIDRules(t *testing.T) {
	id := func(m MessageID) func(*Config) { return topic(func(t *Topic) { t.MessageID = m }) }
	key := MessageID{From: FromKey}
	json := func(path string) MessageID { return MessageID{From: FromJSON, Path: path} }
	testRules(t, []string{"orders"}, []rule{
		{"no from", id(MessageID{Name: "x"}), "topics[0].message_id.from: is required"},
		{"unknown from", id(MessageID{From: "headers"}),
			`topics[0].message_id.from: must be header, key, json, avro, protobuf, json_schema, debezium, maxwell, canal_json, ticdc, cockroachdb, mongodb, dms, value_hash, composite or first_of, got "headers"; did you mean header?`},
		{"header without name", id(MessageID{From: FromHeader}),
			"topics[0].message_id.name: is required with from: header"},
		{"header with path", id(MessageID{From: FromHeader, Name: "x", Path: "a"}),
			"topics[0].message_id.path: belongs to from: json, avro, protobuf and json_schema, not to from: header"},
		{"json without path", id(json("")),
			"topics[0].message_id.path: is required with from: json"},
		{"json with name", id(MessageID{From: FromJSON, Name: "x", Path: "a"}),
			"topics[0].message_id.name: belongs to from: header, not to from: json"},
		{"json path", id(json(`items.0.order\.id.a\\b`)), ""},
		{"json path with brackets and a document", id(json(`items[0].payload|json.id`)), ""},
		{"json path of another language", id(json(`$.items[0].id`)),
			`topics[0].message_id.path: begins with $, which stands for nothing here: "$.items[0].id"; write items[0].id, or \$ for a member of this name`},
		{"json path with a wildcard", id(json(`items[*].id`)),
			`topics[0].message_id.path: has a bracket without an index: "items[*].id"; write items[0] or items.0 for an element, and \[ for a bracket in a name`},
		{"json of the key", id(MessageID{From: FromJSON, Path: "id", Part: PartKey}), ""},
		{"json of the value", id(MessageID{From: FromJSON, Path: "id", Part: PartValue}), ""},
		{"json of another part", id(MessageID{From: FromJSON, Path: "id", Part: "keys"}),
			`topics[0].message_id.part: must be value or key, got "keys"; did you mean key?`},
		{"part without json", id(MessageID{From: FromKey, Part: PartKey}),
			"topics[0].message_id.part: belongs to from: json, avro, protobuf and json_schema, not to from: key"},
		{"json path with an empty segment", id(json("a..b")),
			`topics[0].message_id.path: has an empty segment: "a..b"`},
		{"json path that begins with a dot", id(json(".a")),
			`topics[0].message_id.path: has an empty segment: ".a"`},
		{"json path that ends with a dot", id(json("a.")),
			`topics[0].message_id.path: has an empty segment: "a."`},
		{"json path with a lone backslash", id(json(`a\b`)),
			`topics[0].message_id.path: has a lone backslash: "a\\b"; write \\ for a backslash and \. for a dot in a name`},
		{"key", id(key), ""},
		{"key with name", id(MessageID{From: FromKey, Name: "x"}),
			"topics[0].message_id.name: belongs to from: header, not to from: key"},
		{"value_hash", id(MessageID{From: FromValueHash}), ""},
		{"value_hash with parts", id(MessageID{From: FromValueHash, Parts: []MessageID{key, key}}),
			"topics[0].message_id.parts: belongs to from: composite and first_of, not to from: value_hash"},
		{"composite", id(MessageID{From: FromComposite, Parts: []MessageID{key, json("a")}}), ""},
		{"composite without parts", id(MessageID{From: FromComposite}),
			"topics[0].message_id.parts: is required with from: composite"},
		{"composite of one part", id(MessageID{From: FromComposite, Parts: []MessageID{key}}),
			"topics[0].message_id.parts: must be at least 2, got 1"},
		{"composite in a composite",
			id(MessageID{From: FromComposite, Parts: []MessageID{key, {From: FromComposite}}}),
			`topics[0].message_id.parts[1].from: must be header, key, json, avro, protobuf, json_schema, debezium, maxwell, canal_json, ticdc, cockroachdb, mongodb, dms or value_hash, got "composite"`},
		{"first_of", id(MessageID{From: FromFirstOf, Parts: []MessageID{key, json("a"),
			{From: FromComposite, Parts: []MessageID{key, json("a")}}}}), ""},
		{"first_of without parts", id(MessageID{From: FromFirstOf}),
			"topics[0].message_id.parts: is required with from: first_of"},
		{"first_of in a first_of",
			id(MessageID{From: FromFirstOf, Parts: []MessageID{key, {From: FromFirstOf}}}),
			`topics[0].message_id.parts[1].from: must be header, key, json, avro, protobuf, json_schema, debezium, maxwell, canal_json, ticdc, cockroachdb, mongodb, dms, value_hash or composite, got "first_of"`},
		{"first_of in a composite",
			id(MessageID{From: FromComposite, Parts: []MessageID{key, {From: FromFirstOf}}}),
			`topics[0].message_id.parts[1].from: must be header, key, json, avro, protobuf, json_schema, debezium, maxwell, canal_json, ticdc, cockroachdb, mongodb, dms or value_hash, got "first_of"`},
		{"occurrence", id(MessageID{From: FromHeader, Name: "x", Occurrence: OccurrenceLast}), ""},
		{"unknown occurrence", id(MessageID{From: FromHeader, Name: "x", Occurrence: "lst"}),
			`topics[0].message_id.occurrence: must be first or last, got "lst"; did you mean last?`},
		{"header case", id(MessageID{From: FromHeader, Name: "x", HeaderCase: HeaderAny}), ""},
		{"unknown header case", id(MessageID{From: FromHeader, Name: "x", HeaderCase: "An"}),
			`topics[0].message_id.header_case: must be exact or any, got "An"; did you mean any?`},
		{"header case of a key", id(MessageID{From: FromKey, HeaderCase: HeaderAny}),
			"topics[0].message_id.header_case: belongs to from: header, not to from: key"},
		{"occurrence of a key", id(MessageID{From: FromKey, Occurrence: OccurrenceLast}),
			"topics[0].message_id.occurrence: belongs to from: header, not to from: key"},
		{"normalize", id(MessageID{From: FromKey, Normalize: []string{"trim", "unquote", "lower",
			"uuid", "trim"}}), ""},
		{"unknown step", id(MessageID{From: FromKey, Normalize: []string{"trim", "lowercase"}}),
			`topics[0].message_id.normalize[1]: must be trim, payload, unquote, lower or uuid, got "lowercase"`},
		{"too many steps", id(MessageID{From: FromKey, Normalize: slices.Repeat(
			[]string{"trim"}, 9)}),
			"topics[0].message_id.normalize: must be at most 8 steps, got 9"},
		{"normalize of a hash", id(MessageID{From: FromValueHash, Normalize: []string{"trim"}}),
			"topics[0].message_id.normalize: belongs to places that have bytes of an ID, not to from: value_hash"},
		{"normalize of a composite", id(MessageID{From: FromComposite,
			Normalize: []string{"trim"}, Parts: []MessageID{key, json("a")}}),
			"topics[0].message_id.normalize: belongs to places without parts, not to from: composite; set it in the parts"},
		{"wrong part", id(MessageID{From: FromComposite, Parts: []MessageID{key, json("a..b")}}),
			`topics[0].message_id.parts[1].path: has an empty segment: "a..b"`},
	})
}

func TestConditionRules(t *testing.T) {
	only := func(c Condition) func(*Config) { return topic(func(t *Topic) { t.OnlyIf = c }) }
	testRules(t, []string{"orders"}, []rule{
		{"none", only(Condition{}), ""},
		{"header", only(Condition{From: FromHeader, Name: "type", Is: []string{"a", "b"}}), ""},
		{"key", only(Condition{From: FromKey}), ""},
		{"json", only(Condition{From: FromJSON, Path: "op", Is: []string{"true"}}), ""},
		{"no from", only(Condition{Name: "type"}), "topics[0].only_if.from: is required"},
		{"values and no place", only(Condition{Is: []string{"a"}}),
			"topics[0].only_if.from: is required"},
		{"a place that is none", only(Condition{From: FromValueHash}),
			`topics[0].only_if.from: must be header, key, json, avro or protobuf, got "value_hash"`},
		{"header without name", only(Condition{From: FromHeader}),
			"topics[0].only_if.name: is required with from: header"},
		{"wrong path", only(Condition{From: FromJSON, Path: "$.op"}),
			`topics[0].only_if.path: begins with $, which stands for nothing here: "$.op"; write op, or \$ for a member of this name`},
		{"name of a key", only(Condition{From: FromKey, Name: "x"}),
			"topics[0].only_if.name: belongs to from: header, not to from: key"},
		{"an empty value", only(Condition{From: FromKey, Is: []string{"a", ""}}),
			"topics[0].only_if.is[1]: must not be empty; leave the list empty for any value that is not empty"},
	})
}

func TestFingerprintRules(t *testing.T) {
	of := func(f Fingerprint) func(*Config) { return topic(func(t *Topic) { t.Fingerprint = f }) }
	hash := func(ignore, only []string) func(*Config) {
		return topic(func(t *Topic) {
			t.MessageID = MessageID{From: FromValueHash, Ignore: ignore, Only: only}
		})
	}
	testRules(t, []string{"orders"}, []rule{
		{"none", of(Fingerprint{Of: FingerprintNone}), ""},
		{"ignore", of(Fingerprint{Of: FingerprintAll, Ignore: []string{"ts_ms", "a[0].b"}}), ""},
		{"only", of(Fingerprint{Of: FingerprintAll, Only: []string{"order"}}), ""},
		{"a format", of(Fingerprint{Of: FingerprintAll, Only: []string{"a"},
			Format: FormatJSON}), ""},
		{"an unknown format", of(Fingerprint{Of: FingerprintAll, Only: []string{"a"},
			Format: "xml"}),
			`topics[0].fingerprint.format: must be json, avro or protobuf, got "xml"`},
		{"a format of no fields", of(Fingerprint{Of: FingerprintAll, Format: FormatJSON}),
			"topics[0].fingerprint.format: belongs to ignore and only; leave it out"},
		{"unknown", of(Fingerprint{Of: "value"}),
			`topics[0].fingerprint.of: must be all or none, got "value"`},
		{"none with fields", of(Fingerprint{Of: FingerprintNone, Ignore: []string{"a"}}),
			"topics[0].fingerprint.of: must not be none with fields that count or do not; set it to all, or leave out ignore and only"},
		{"both", of(Fingerprint{Of: FingerprintAll, Ignore: []string{"a"}, Only: []string{"b"}}),
			"topics[0].fingerprint.only: excludes topics[0].fingerprint.ignore; what is not in only is ignored"},
		{"wrong path", of(Fingerprint{Of: FingerprintAll, Ignore: []string{"a", "$.b"}}),
			`topics[0].fingerprint.ignore[1]: begins with $, which stands for nothing here: "$.b"; write b, or \$ for a member of this name`},
		{"within a string", of(Fingerprint{Of: FingerprintAll, Only: []string{"a.b|json.c"}}),
			`topics[0].fingerprint.only[0]: must not lead into a document within a string: "a.b|json.c"; name the string: a.b`},
		{"too many", of(Fingerprint{Of: FingerprintAll, Only: slices.Repeat([]string{"a"}, 33)}),
			"topics[0].fingerprint.only: must be at most 32 fields, got 33"},
		{"a hash without fields", hash([]string{"a"}, nil), ""},
		{"a hash of fields", hash(nil, []string{"a"}), ""},
		{"a hash of both", hash([]string{"a"}, []string{"b"}),
			"topics[0].message_id.only: excludes topics[0].message_id.ignore; what is not in only is ignored"},
		{"a key without fields", topic(func(t *Topic) {
			t.MessageID = MessageID{From: FromKey, Ignore: []string{"a"}}
		}), "topics[0].message_id.ignore: belongs to from: value_hash, not to from: key"},
	})
}

func TestTheFormatOfAContentFollowsTheMessageID(t *testing.T) {
	for _, c := range []struct {
		id    MessageID
		named string
		want  string
	}{
		{MessageID{From: FromHeader}, "", FormatJSON},
		{MessageID{From: FromHeader}, FormatAvro, FormatAvro},
		{MessageID{From: FromAvro, Path: "id"}, "", FormatAvro},
		{MessageID{From: FromAvro, Path: "id"}, FormatJSON, FormatJSON},
		{MessageID{From: FromProtobuf, Path: "id", Part: PartValue}, "", FormatProtobuf},
		{MessageID{From: FromAvro, Path: "id", Part: PartKey}, "", FormatJSON},
		{MessageID{From: FromValueHash, Format: FormatAvro}, "", FormatAvro},
		{MessageID{From: FromFirstOf, Parts: []MessageID{{From: FromAvro}}}, "", FormatJSON},
	} {
		topic := Topic{MessageID: c.id, Fingerprint: Fingerprint{Format: c.named}}
		if got := topic.ContentFormat(); got != c.want {
			t.Errorf("%+v, named %q: %s, want %s", c.id, c.named, got, c.want)
		}
	}
}
