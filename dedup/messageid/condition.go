package messageid

import (
	"fmt"
	"slices"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/dedup"
)

// Condition tells apart which records have message IDs: those with a value in a place.
type Condition struct {
	Place Source   // a header, a key or a JSON field
	Is    []string // the values that hold, byte for byte; empty: any that is not empty or null
}

// condition is one that was checked.
type condition struct {
	value func(*kgo.Record) ([]byte, dedup.MissingReason)
	is    []string
}

func newCondition(c Condition) (*condition, error) {
	switch c.Place.From {
	case "header", "key":
		find, _, err := newPlace(c.Place, new(gathered))
		if err != nil {
			return nil, err
		}
		return &condition{func(r *kgo.Record) ([]byte, dedup.MissingReason) {
			id, missing := find(r)
			return bytesOf(id), missing
		}, c.Is}, nil
	case "json":
		place, err := newJSONSource(c.Place, new(sighting))
		if err != nil {
			return nil, err
		}
		return &condition{place.text, c.Is}, nil
	}
	return nil, fmt.Errorf("from %q is not header, key or json", c.Place.From)
}

// leavesOut reports whether the record is known not to have the value. What cannot be read may have
// it, and goes the way of all others.
func (c *condition) leavesOut(r *kgo.Record) bool {
	value, missing := c.value(r)
	switch {
	case missing == dedup.MissingUnparsable:
		return false
	case missing == dedup.MissingUnsupportedType: // there is an object or an array
		return len(c.is) > 0
	case missing != dedup.NotMissing:
		return true
	case len(c.is) == 0:
		return false
	}
	return !slices.ContainsFunc(c.is, func(wanted string) bool { return string(value) == wanted })
}

// text is a field as a condition compares it: a string as what it stands for, a number or a word
// as it is written.
func (j *jsonSource) text(r *kgo.Record) ([]byte, dedup.MissingReason) {
	doc := j.part(r)
	if doc == nil {
		return nil, dedup.MissingNull
	}
	if len(doc) == 0 {
		return nil, dedup.MissingEmpty
	}
	field, _, missing := j.field(doc)
	if missing != dedup.NotMissing {
		return nil, missing
	}
	switch field[0] {
	case '"':
		field = unescaped(field[1 : len(field)-1])
	case '{', '[':
		return nil, dedup.MissingUnsupportedType
	case 'n':
		return nil, dedup.MissingNull
	}
	if len(field) == 0 {
		return nil, dedup.MissingEmpty
	}
	return field, dedup.NotMissing
}

// Rules say in which records a message ID is looked for, and what is the same content.
type Rules struct {
	OnlyIf     *Condition // of these records only; nil: of all
	Tombstones bool       // records without a value are told apart, before the condition
	// Fingerprint says what of records with equal IDs is compared. It is a part of String: claims
	// with other fingerprints mean something else.
	Fingerprint Content
}

// With returns an extractor that heeds rules. They change no ID.
func (e *Extractor) With(rules Rules) (_ *Extractor, err error) {
	with := *e
	if with.content, err = newContent(rules.Fingerprint); err != nil {
		return nil, fmt.Errorf("fingerprint: %w", err)
	}
	if with.content != nil {
		with.name += dedup.FingerprintMark + with.content.name
	}
	if rules.OnlyIf != nil {
		only, err := newCondition(*rules.OnlyIf)
		if err != nil {
			return nil, fmt.Errorf("only_if: %w", err)
		}
		with.find = only.around(with.find)
	}
	if rules.Tombstones {
		with.find = tombstonesApart(with.find)
	}
	return &with, nil
}

func (c *condition) around(find finder) finder {
	return func(r *kgo.Record) (dedup.ID, dedup.MissingReason) {
		if c.leavesOut(r) {
			return "", dedup.MissingExempt
		}
		return find(r)
	}
}

func tombstonesApart(find finder) finder {
	return func(r *kgo.Record) (dedup.ID, dedup.MissingReason) {
		if r.Value == nil {
			return "", dedup.MissingTombstone
		}
		return find(r)
	}
}
