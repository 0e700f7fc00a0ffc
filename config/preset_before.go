package config

import "reflect"

// earlier is what a preset stood for in an earlier version. The claims of its scopes are of the IDs
// that it found.
type earlier struct {
	messageID   MessageID
	fingerprint Fingerprint
	// sameIDs: each ID that it found is found as it was, and beside them others. So the claims go
	// on to mean something.
	sameIDs bool
}

// Before is the entry as an earlier version read it, if that has changed: what it has of its preset
// is what the preset stood for then. sameIDs says that the present version finds each ID that the
// earlier one found.
func (t Topic) Before() (before Topic, sameIDs, changed bool) {
	stands := presets[t.MessageID.Preset]
	if stands.before == nil {
		return t, false, false
	}
	before = t
	id, was := &before.MessageID, stands.before.messageID
	if reflect.DeepEqual(id.Ignore, stands.messageID.Ignore) {
		id.Ignore = was.Ignore
	}
	if reflect.DeepEqual(id.Parts, stands.messageID.Parts) {
		id.Parts = was.Parts
	}
	if reflect.DeepEqual(before.Fingerprint, stands.fingerprint) {
		before.Fingerprint = stands.before.fingerprint
	}
	return before, stands.before.sameIDs, !reflect.DeepEqual(before, t)
}
