package config

import (
	"slices"
	"testing"
)

func TestWhatAPresetStoodForIsKnown(t *testing.T) {
	for settings, want := range map[string]struct {
		changed, sameIDs bool
		holds            func(before Topic) bool
	}{
		"message_id: {preset: debezium}": {true, false, func(before Topic) bool {
			return slices.Equal(before.MessageID.Ignore, debeziumOwnBefore) &&
				slices.Equal(before.Fingerprint.Ignore, debeziumOwnBefore)
		}},
		"message_id: {preset: debezium, ignore: [op]}": {true, false, func(before Topic) bool {
			return slices.Equal(before.MessageID.Ignore, []string{"op"}) &&
				slices.Equal(before.Fingerprint.Ignore, debeziumOwnBefore)
		}},
		"message_id: {preset: debezium, ignore: [op]}\n    fingerprint: none": {},
		"message_id: {preset: github}": {true, true, func(before Topic) bool {
			return len(before.MessageID.Parts) == 2 && before.Fingerprint.Of == FingerprintAll
		}},
		"message_id: {preset: stripe}":        {},
		"message_id: {from: header, name: a}": {},
	} {
		topic, _ := parsePreset(t, settings)
		before, sameIDs, changed := topic.Before()
		if changed != want.changed || sameIDs != want.sameIDs {
			t.Errorf("%s: changed %v, same IDs %v", settings, changed, sameIDs)
		}
		if want.changed && !want.holds(before) {
			t.Errorf("%s: was %+v", settings, before)
		}
	}
}
