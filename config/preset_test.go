package config

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func presetFile(settings string) []byte {
	return []byte("instance: one\nkafka: {brokers: [localhost:9092]}\ntopics:\n" +
		"  - input: in\n    output: out\n    consumer_group: g\n    dead_letter_topic: dlq\n" +
		"    " + settings + "\n")
}

func parsePreset(t *testing.T, settings string, env ...string) (Topic, Places) {
	t.Helper()
	c, places, err := Parse("test", presetFile(settings), env)
	if err != nil {
		t.Fatalf("%s: %v", settings, err)
	}
	return c.Topics[0], places
}

func TestAPresetStandsForSettingsThatMayBeWrittenOut(t *testing.T) {
	for _, name := range Presets() {
		byName, places := parsePreset(t, "message_id: {preset: "+name+"}")
		want := DefaultTopic().WithPreset(name)
		if diff := cmp.Diff(want.MessageID, byName.MessageID); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if diff := cmp.Diff(want.Fingerprint, byName.Fingerprint); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if byName.OnTombstone != want.OnTombstone {
			t.Errorf("%s: on_tombstone is %s", name, byName.OnTombstone)
		}
		if got := places["topics[0].message_id.from"]; got != "preset "+name {
			t.Errorf("%s: from comes from %q", name, got)
		}
	}
}

func TestWhatAnEntrySetsItselfWinsOverItsPreset(t *testing.T) {
	before := debeziumOwn[0]
	for _, row := range []struct {
		settings string
		env      []string
		holds    func(Topic) bool
	}{
		{"message_id: {preset: spring, name: msg-id}", nil, func(t Topic) bool {
			return t.MessageID.Name == "msg-id" && len(t.MessageID.Normalize) == 2
		}},
		{"message_id: {preset: spring, normalize: [trim]}", nil, func(t Topic) bool {
			return slices.Equal(t.MessageID.Normalize, []string{NormalizeTrim}) &&
				t.MessageID.Name == "id"
		}},
		{"message_id: {preset: spring, occurrence: last}", nil, func(t Topic) bool {
			return t.MessageID.Occurrence == OccurrenceLast && t.MessageID.From == FromHeader
		}},
		{"message_id: {preset: debezium, ignore: [op]}", nil, func(t Topic) bool {
			return slices.Equal(t.MessageID.Ignore, []string{"op"}) &&
				len(t.Fingerprint.Ignore) == len(debeziumOwn)
		}},
		{"message_id: {preset: stripe, path: payload.id}\n    fingerprint: {only: [type]}", nil,
			func(t Topic) bool {
				return t.MessageID.Path == "payload.id" && len(t.Fingerprint.Ignore) == 0 &&
					slices.Equal(t.Fingerprint.Only, []string{"type"})
			}},
		{"message_id: {preset: cloudevents}\n    fingerprint: all", nil,
			func(t Topic) bool { return t.Fingerprint.Of == FingerprintAll }},
		{"message_id: {preset: debezium, any_source: true}", nil,
			func(t Topic) bool {
				return t.MessageID.AnySource && t.MessageID.From == FromDebezium
			}},
		{"message_id: {preset: debezium}\n    on_tombstone: drop", nil,
			func(t Topic) bool { return t.OnTombstone == ActionDrop }},
		{"message_id: {preset: '${KIND}'}", []string{"KIND=segment"},
			func(t Topic) bool { return t.MessageID.Path == "messageId" }},
		{"message_id: {preset: spring}", []string{"KDEDUP_TOPICS_0_MESSAGE_ID_PRESET=segment",
			"KDEDUP_TOPICS_0_MESSAGE_ID_PATH=id"},
			func(t Topic) bool { return t.MessageID.From == FromJSON && t.MessageID.Path == "id" }},
	} {
		if topic, _ := parsePreset(t, row.settings, row.env...); !row.holds(topic) {
			t.Errorf("%s: got %+v", row.settings, topic)
		}
	}
	if got := debeziumOwn[0]; got != before {
		t.Errorf("an entry has changed the preset of all others: %q", got)
	}
}

func TestWhatContradictsAPresetOrAPlaceIsRefused(t *testing.T) {
	for settings, want := range map[string]string{
		"message_id: {preset: debezum}": "topics[0].message_id.preset (line 8): must be " +
			"canal, cloudevents, cockroachdb, debezium, debezium_outbox, dms, github, maxwell, " +
			"mongodb, segment, shopify, snowplow, spring, stripe " +
			`or ticdc, got "debezum"; did you mean debezium?`,
		"message_id: {preset: stripe, from: key}": "topics[0].message_id.from (line 8): excludes " +
			"topics[0].message_id.preset: stripe says where the ID stands; leave out one of " +
			"the two",
		"message_id: {preset: github, parts: [{from: key}, {from: header, name: a}]}": "topics" +
			"[0].message_id.parts (line 8): excludes topics[0].message_id.preset",
		"message_id: {preset: stripe, name: id}": "topics[0].message_id.name (line 8): belongs " +
			"to from: header, not to from: json",
		"message_id: {preset: github, normalize: [uuid]}": "set it in the parts",
		"message_id: {preset: debezium, only: [after]}": "topics[0].message_id.only (line 8): " +
			"excludes topics[0].message_id.ignore",
		"message_id: {preset: stripe, any_source: true}": "topics[0].message_id.any_source " +
			"(line 8): belongs to from: debezium, not to from: json",
		"message_id: {preset: debezium, normalize: [trim]}": "topics[0].message_id.normalize " +
			"(line 8): belongs to places that have bytes of an ID, not to from: debezium",
		"message_id: {preset: debezium, format: avro}": "schema_registry.urls: is required with " +
			"topics[0].message_id.format: avro",
		"message_id: {preset: '${NONE}'}": "environment variable NONE is not set",
		"message_id: {from: composite, parts: [{preset: stripe}, {from: key}]}": "topics[0]." +
			"message_id.parts[0].preset (line 8): belongs to message_id, not to a part",
		"message_id: {from: composite, parts: [{from: key, hmac_key: a}, {from: key}]}": "" +
			"topics[0].message_id.parts[0].hmac_key (line 8): belongs to message_id, not to a part",
		"message_id: {from: key, hmac_key: short}": "topics[0].message_id.hmac_key (line 8): " +
			"must be at least 16 bytes, got 5; make one with openssl rand -hex 32",
		"message_id: {}": "topics[0].message_id.from: is required",
	} {
		_, _, err := Parse("test", presetFile(settings), nil)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", settings, err, want)
		}
	}
}
