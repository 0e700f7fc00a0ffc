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

// Before is an entry as an earlier version read it: what it has of its preset is what the preset
// stood for then.
type Before struct {
	Topic
	SameIDs bool // the present version finds each ID that the earlier one found
}

// Before lists what earlier versions made of the entry, where that has changed.
func (t Topic) Before() (all []Before) {
	stands := presets[t.MessageID.Preset]
	now := earlier{messageID: stands.messageID, fingerprint: stands.fingerprint}
	if hashed, is := stands.hashed(); is && t.MessageID.From == FromValueHash {
		now = hashed
	}
	for _, was := range stands.before {
		before := Before{t.as(now, was), was.sameIDs}
		if !reflect.DeepEqual(before.Topic, t) {
			all = append(all, before)
		}
	}
	return all
}

// as replaces what a preset stands for by what it stood for.
func (t Topic) as(now, was earlier) Topic {
	id := &t.MessageID
	switch {
	case id.From == now.messageID.From && was.messageID.From != id.From:
		id.From, id.Ignore, id.AnySource = was.messageID.From, was.messageID.Ignore, false
	case reflect.DeepEqual(id.Ignore, now.messageID.Ignore):
		id.Ignore = was.messageID.Ignore
	}
	if reflect.DeepEqual(id.Parts, now.messageID.Parts) {
		id.Parts = was.messageID.Parts
	}
	if reflect.DeepEqual(id.Normalize, now.messageID.Normalize) {
		id.Normalize = was.messageID.Normalize
	}
	if reflect.DeepEqual(t.Fingerprint, now.fingerprint) {
		t.Fingerprint = was.fingerprint
	}
	return t
}

// hashed is the newest version of a preset that was a hash of the value, if it is one no more: an
// entry that sets the fields of the hash itself goes on with that.
func (p preset) hashed() (earlier, bool) {
	if p.messageID.From == FromValueHash {
		return earlier{}, false
	}
	for _, was := range p.before {
		if was.messageID.From == FromValueHash {
			return was, true
		}
	}
	return earlier{}, false
}
