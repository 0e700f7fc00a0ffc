package config

import (
	"slices"
	"testing"
)

func TestWhatAPresetStoodForIsKnown(t *testing.T) {
	hash := func(own []string) func(Before) bool {
		return func(was Before) bool {
			return was.MessageID.From == FromValueHash && !was.SameIDs &&
				!was.MessageID.AnySource &&
				slices.Equal(was.MessageID.Ignore, own) &&
				slices.Equal(was.Fingerprint.Ignore, own) && was.MessageID.Preset == PresetDebezium
		}
	}
	own := func(fingerprint []string) func(Before) bool {
		return func(was Before) bool {
			return was.MessageID.From == FromValueHash && !was.SameIDs &&
				slices.Equal(was.MessageID.Ignore, []string{"op"}) &&
				slices.Equal(was.Fingerprint.Ignore, fingerprint)
		}
	}
	changes := []func(Before) bool{hash(debeziumOwn), hash(debeziumOwnBefore)}
	for settings, want := range map[string][]func(Before) bool{
		"message_id: {preset: debezium}":                   changes,
		"message_id: {preset: debezium, any_source: true}": changes,
		"message_id: {preset: debezium, format: avro}\nschema_registry: {urls: ['http://a']}": {
			func(was Before) bool { return changes[0](was) && was.MessageID.Format == FormatAvro },
			func(was Before) bool { return changes[1](was) && was.MessageID.Format == FormatAvro },
		},
		"message_id: {preset: debezium, ignore: [op]}": {
			own(debeziumOwnBefore)},
		"message_id: {preset: debezium, ignore: [op]}\n    fingerprint: none": nil,
		"message_id: {preset: debezium}\n    fingerprint: {ignore: [ts_ms]}": {
			func(was Before) bool {
				return slices.Equal(was.MessageID.Ignore, debeziumOwn) &&
					slices.Equal(was.Fingerprint.Ignore, []string{"ts_ms"})
			},
			func(was Before) bool { return slices.Equal(was.MessageID.Ignore, debeziumOwnBefore) },
		},
		"message_id: {preset: debezium_outbox}": {func(was Before) bool {
			return !was.SameIDs && slices.Equal(was.MessageID.Normalize,
				[]string{NormalizeUnquote, NormalizeUUID})
		}},
		"message_id: {preset: debezium_outbox, normalize: [trim]}": nil,
		"message_id: {preset: github}": {func(was Before) bool {
			return was.SameIDs && len(was.MessageID.Parts) == 2 &&
				was.Fingerprint.Of == FingerprintAll
		}},
		"message_id: {preset: stripe}":        nil,
		"message_id: {from: header, name: a}": nil,
	} {
		topic, _ := parsePreset(t, settings)
		got := topic.Before()
		if len(got) != len(want) {
			t.Errorf("%s: %d earlier ones, want %d", settings, len(got), len(want))
			continue
		}
		for i, holds := range want {
			if !holds(got[i]) {
				t.Errorf("%s: was %+v", settings, got[i])
			}
		}
	}
}

// What an entry of an earlier version sets itself goes on to mean what it meant.
func TestFieldsOfAHashBesideThePresetOfDebeziumStayAHash(t *testing.T) {
	topic, _ := parsePreset(t, "message_id: {preset: debezium, ignore: [ts_ms, op]}")
	m := topic.MessageID
	if m.From != FromValueHash || m.Preset != PresetDebezium ||
		!slices.Equal(m.Ignore, []string{"ts_ms", "op"}) ||
		!slices.Equal(topic.Fingerprint.Ignore, debeziumOwn) {
		t.Errorf("got %+v", topic)
	}
}
