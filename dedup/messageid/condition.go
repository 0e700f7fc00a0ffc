package messageid

import (
	"fmt"
	"slices"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/dedup"
)

// Condition tells apart which records have message IDs: those with a value in a place.
type Condition struct {
	Place Source   // a header, a key, or a field in JSON, Avro or Protobuf
	Is    []string // the values that hold, byte for byte; empty: any that is not empty or null
}

// condition is one that was checked.
type condition struct {
	value func(*kgo.Record) ([]byte, dedup.MissingReason)
	is    []string

	schemas []*schemas // that records need for it
}

func newCondition(c Condition, news *news) (*condition, error) {
	switch c.Place.From {
	case "header", "key":
		find, _, err := newPlace(c.Place, new(gathered))
		if err != nil {
			return nil, err
		}
		return &condition{value: func(r *kgo.Record) ([]byte, dedup.MissingReason) {
			id, missing := find(r)
			return bytesOf(id), missing
		}, is: c.Is}, nil
	case "json":
		place, err := newJSONSource(c.Place, new(sighting))
		if err != nil {
			return nil, err
		}
		return &condition{value: func(r *kgo.Record) ([]byte, dedup.MissingReason) {
			return place.text(place.part(r))
		}, is: c.Is}, nil
	case FromAvro, FromProtobuf:
		return newSchemaCondition(c, news)
	}
	return nil, fmt.Errorf("from %q is not header, key, json, avro or protobuf", c.Place.From)
}

// newSchemaCondition reads all of a record, and so has truth values, which cannot be IDs.
func newSchemaCondition(c Condition, news *news) (*condition, error) {
	if _, err := onePath(c.Place.Path); err != nil {
		return nil, err
	}
	place, err := newJSONSource(c.Place, new(sighting))
	if err != nil {
		return nil, err
	}
	docs, err := newDocuments(c.Place.From, place.ofKey, c.Place.Registry, news)
	if err != nil {
		return nil, err
	}
	return &condition{value: func(r *kgo.Record) ([]byte, dedup.MissingReason) {
		with := encoders.Get().(*encoder)
		defer encoders.Put(with)
		doc, missing := with.read(docs, r)
		if missing != dedup.NotMissing {
			return nil, missing
		}
		text, missing := place.text(doc)
		return slices.Clone(text), missing
	}, is: c.Is, schemas: []*schemas{&docs.schemas}}, nil
}

// leavesOut reports whether a record with this value is left out. What cannot be read may have the
// value, and goes the way of all others.
func (c *condition) leavesOut(value []byte, missing dedup.MissingReason) bool {
	switch missing {
	case dedup.NotMissing:
	case dedup.MissingUnparsable, dedup.MissingUnframed, dedup.MissingUnknownSchema,
		dedup.MissingUnusableSchema:
		return false
	case dedup.MissingUnsupportedType: // there is an object or an array
		return len(c.is) > 0
	default:
		return true
	}
	return len(c.is) > 0 &&
		!slices.ContainsFunc(c.is, func(wanted string) bool { return string(value) == wanted })
}

// text is a field as a condition compares it: a string as what it stands for, a number or a word
// as it is written.
func (j *jsonSource) text(doc []byte) ([]byte, dedup.MissingReason) {
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
	Tombstones bool       // records of IsTombstone are told apart, before the condition
	// WholeJSON says that a record has an ID only if its value is one whole JSON document, or none
	// at all. A value that was cut off would take the ID of the copy that is whole.
	WholeJSON bool
	// Fingerprint says what of records with equal IDs is compared. It is a part of String: claims
	// with other fingerprints mean something else.
	Fingerprint Content
	Registry    Registry // has the schemas of a Fingerprint in Avro or Protobuf
}

// With returns an extractor that heeds rules. They change no ID.
func (e *Extractor) With(rules Rules) (_ *Extractor, err error) {
	with := *e
	with.content, err = newContent(rules.Fingerprint, rules.Registry, &e.all.news)
	if err != nil {
		return nil, fmt.Errorf("fingerprint: %w", err)
	}
	if with.content != nil {
		with.name += dedup.FingerprintMark + with.content.name
		if docs := with.content.documents; docs != nil {
			with.find = with.content.before(with.find)
			with.schemas = append(slices.Clip(with.schemas), &docs.schemas)
		}
	}
	if rules.WholeJSON {
		with.find = ofWholeJSON(with.find)
	}
	if rules.OnlyIf != nil {
		only, err := newCondition(*rules.OnlyIf, &e.all.news)
		if err != nil {
			return nil, fmt.Errorf("only_if: %w", err)
		}
		with.find = only.around(with.find)
		with.schemas = append(slices.Clip(with.schemas), only.schemas...)
	}
	if rules.Tombstones {
		with.find = tombstonesApart(with.find)
	}
	return &with, nil
}

func (c *condition) around(find finder) finder {
	return func(r *kgo.Record) (dedup.ID, dedup.MissingReason) {
		value, missing := c.value(r)
		switch {
		case missing == dedup.MissingUnresolved:
			return "", missing
		case c.leavesOut(value, missing):
			return "", dedup.MissingExempt
		}
		return find(r)
	}
}

func ofWholeJSON(find finder) finder {
	return func(r *kgo.Record) (dedup.ID, dedup.MissingReason) {
		id, missing := find(r)
		if missing == dedup.NotMissing && r.Value != nil && !WholeJSON(r.Value) {
			return "", dedup.MissingUnparsable
		}
		return id, missing
	}
}

func tombstonesApart(find finder) finder {
	return func(r *kgo.Record) (dedup.ID, dedup.MissingReason) {
		if IsTombstone(r.Value) {
			return "", dedup.MissingTombstone
		}
		return find(r)
	}
}
