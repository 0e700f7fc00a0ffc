// Package messageid finds the message ID of a record, as kdedup's configuration describes it: in a
// header, in the key, in a field of a JSON document, or in several of these places. It also says
// what of records with equal IDs is compared, and which records have no ID on purpose.
//
//	ids, err := messageid.New(messageid.Source{From: "json", Path: "order.id"})
//	deduper := dedup.New(scope, store, dedup.Options{Extractor: ids})
package messageid

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"unsafe"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/dedup"
)

// MaxBytes is the length up to which an ID is stored as it is. A longer one is replaced by
// "sha256:" and the 32 bytes of its SHA-256.
const MaxBytes = 4096

const longIDPrefix = "sha256:"

// Source says where records carry their ID.
type Source struct {
	// header, key, json, avro, protobuf, json_schema, value_hash, composite or first_of; or the
	// form of a database's changes: debezium, maxwell, canal_json, ticdc, cockroachdb, mongodb, dms
	From string
	Name string // of the header
	// HeaderCase says whether the case of the name's letters counts: HeaderExact, the default, or
	// HeaderAny, by which letters of ASCII are the same in either case, as in HTTP.
	HeaderCase string
	// Occurrence of a header that stands more than once: OccurrenceFirst, the default, or
	// OccurrenceLast.
	Occurrence string
	// Path of the field: order.id, items[0].id, payload|json.id; a literal dot is written \.
	Path string
	Part string // of the record that has the field: PartValue, the default, or PartKey
	// Normalize lists what is done to the bytes of a header, a key or a JSON field, in this order:
	// NormalizeTrim and so on.
	Normalize []string
	// Ignore lists fields of a value that do not count in its hash, Only those that do, and Format
	// is that of the value, as in Content. A change of Debezium's has a Format, too.
	Ignore, Only []string
	Format       string
	// AnySource says that a change is the same whichever connector sends it: its source.name does
	// not count.
	AnySource bool
	Parts     []Source // of a composite or a first_of, two or more
	// Registry has the schemas of avro and protobuf. Without it their IDs stay unresolved.
	Registry Registry
	// HMACKey, of at least MinHMACKey bytes, replaces each ID by "hmac:" and its HMAC-SHA-256. That
	// of parts has no effect.
	HMACKey []byte
}

// Occurrences of a header.
const (
	OccurrenceFirst = "first"
	OccurrenceLast  = "last"
)

// Cases of a header's name.
const (
	HeaderExact = "exact"
	HeaderAny   = "any"
)

// Parts of a record.
const (
	PartValue = "value"
	PartKey   = "key"
)

// Extractor is a dedup.Extractor for a Source.
type Extractor struct {
	find    finder
	name    string
	all     *gathered
	schemas []*schemas // that records need
	keyed   *keyed     // nil: IDs are stored as they are
	content *content   // of fingerprints; nil: all of key and value
}

// gathered is what the places of one extractor have in common.
type gathered struct {
	skipped sighting   // of a document behind a schema ID
	news    news       // what else an operator should hear of
	schemas []*schemas // that places need
}

type finder = func(*kgo.Record) (dedup.ID, dedup.MissingReason)

// New checks the source.
func New(s Source) (*Extractor, error) {
	all := new(gathered)
	find, name, err := newFinder(s, all)
	if err != nil {
		return nil, fmt.Errorf("message_id: %w", err)
	}
	keyed, err := newKeyed(s.HMACKey)
	if err != nil {
		return nil, fmt.Errorf("message_id: %w", err)
	}
	if keyed != nil {
		name = keyedPrefix + keyed.check + ":" + name
	}
	return &Extractor{find: find, name: name, all: all, schemas: all.schemas, keyed: keyed}, nil
}

// newFinder returns with what it finds IDs the description that String has.
func newFinder(s Source, all *gathered) (find finder, name string, err error) {
	find, name, err = newPlace(s, all)
	switch {
	case s.From != "value_hash" && len(s.Ignore)+len(s.Only) > 0,
		s.From != "value_hash" && !hasFormats(s.From) && s.Format != "":
		return nil, "", errors.New("ignore, only and format belong to from value_hash")
	case s.From != FromDebezium && s.AnySource:
		return nil, "", errors.New("any source belongs to from debezium")
	}
	if err != nil || len(s.Normalize) == 0 {
		return find, name, err
	}
	if s.From == "value_hash" || IsChange(s.From) || len(s.Parts) > 0 {
		return nil, "", errNormalize
	}
	return normalized(find, name, s.Normalize)
}

func newPlace(s Source, all *gathered) (find finder, name string, err error) {
	switch s.From {
	case "header":
		return newHeader(s)
	case "key":
		return fromKey, "key", nil
	case "value_hash":
		return newValueHash(s, all)
	case FromDebezium:
		return newChange(s, all)
	case FromMaxwell, FromCanal, FromTiCDC, FromCockroachDB, FromMongoDB, FromDMS:
		return newFeed(s, all)
	case "json":
		source, err := newJSONSource(s, &all.skipped)
		if err != nil {
			return nil, "", err
		}
		return source.find, source.String(), nil
	case FromJSONSchema:
		return newJSONSchema(s, all)
	case FromAvro, FromProtobuf:
		place, err := newFramed(s, &all.news)
		if err != nil {
			return nil, "", err
		}
		all.schemas = append(all.schemas, &place.schemas)
		return place.find, place.String(), nil
	case "composite", "first_of":
		parts, names, err := newParts(s, all)
		if err != nil {
			return nil, "", fmt.Errorf("%s%w", s.From, err)
		}
		name = s.From + "(" + strings.Join(names, ",") + ")"
		if s.From == "first_of" {
			return firstOf(parts), name, nil
		}
		return composite(parts), name, nil
	}
	return nil, "", fmt.Errorf("from %q is not header, key, json, avro, protobuf, json_schema, "+
		"debezium, maxwell, canal_json, ticdc, cockroachdb, mongodb, dms, value_hash, composite or "+
		"first_of", s.From)
}

func newParts(s Source, all *gathered) (parts []finder, names []string, err error) {
	if len(s.Parts) < 2 {
		return nil, nil, errors.New(" needs at least two parts")
	}
	for _, s := range s.Parts {
		part, name, err := newFinder(s, all)
		if err != nil {
			return nil, nil, fmt.Errorf(": %w", err)
		}
		parts, names = append(parts, part), append(names, name)
	}
	return parts, names, nil
}

// Extract returns the record's ID, or why it has none, or why none is looked for. The ID may share
// memory with the record.
func (e *Extractor) Extract(r *kgo.Record) (dedup.ID, dedup.MissingReason) {
	id, missing := e.find(r)
	if missing != dedup.NotMissing {
		return "", missing
	}
	return e.stored(id), dedup.NotMissing
}

// Of is the ID that a record with these bytes in the place of its ID has without a key.
func Of(text []byte) dedup.ID { return bounded(dedup.ID(text)) }

func (e *Extractor) stored(id dedup.ID) dedup.ID {
	if e.keyed != nil {
		return e.keyed.id(id)
	}
	return bounded(id)
}

// Of is the ID that a record with these bytes in the place of its ID has by this extractor. With a
// key, the bytes may also be what is stored.
func (e *Extractor) Of(text []byte) dedup.ID {
	if e.keyed != nil && isKeyed(text) {
		return dedup.ID(text)
	}
	return e.stored(dedup.ID(text))
}

func bounded(id dedup.ID) dedup.ID {
	if len(id) <= MaxBytes {
		return id
	}
	sum := sha256.Sum256([]byte(id))
	return dedup.ID(longIDPrefix + string(sum[:]))
}

// As is the extractor under a name of an earlier version, all of whose IDs it finds as they were.
func (e *Extractor) As(name string) *Extractor {
	renamed := *e
	renamed.name = name
	return &renamed
}

// String describes the source without ambiguity. It is stored with a scope: claims that were made
// with another one mean nothing.
func (e *Extractor) String() string { return e.name }

// shared makes an ID of bytes that nobody will modify.
func shared(b []byte) (dedup.ID, dedup.MissingReason) {
	switch {
	case b == nil:
		return "", dedup.MissingNull
	case len(b) == 0:
		return "", dedup.MissingEmpty
	}
	return dedup.ID(unsafe.String(unsafe.SliceData(b), len(b))), dedup.NotMissing
}

// bytesOf shares memory with the ID, and is not modified.
func bytesOf(id dedup.ID) []byte { return unsafe.Slice(unsafe.StringData(string(id)), len(id)) }

func fromKey(r *kgo.Record) (dedup.ID, dedup.MissingReason) { return shared(r.Key) }

func newValueHash(s Source, all *gathered) (find finder, name string, err error) {
	part, err := newContent(Content{Format: s.Format, Ignore: s.Ignore, Only: s.Only}, s.Registry,
		&all.news)
	switch {
	case err != nil:
		return nil, "", fmt.Errorf("value_hash: %w", err)
	case part == nil:
		return fromValueHash, "value_hash", nil
	case part.documents != nil:
		all.schemas = append(all.schemas, &part.documents.schemas)
	}
	return part.valueHash, "value_hash(" + part.name + ")", nil
}

// fromValueHash makes equal contents equal IDs. A tombstone and an empty value have no content.
func fromValueHash(r *kgo.Record) (dedup.ID, dedup.MissingReason) {
	if _, missing := shared(r.Value); missing != dedup.NotMissing {
		return "", missing
	}
	sum := sha256.Sum256(r.Value)
	return dedup.ID(sum[:]), dedup.NotMissing
}

// composite joins its parts, each behind its length, so that "a","bc" is not "ab","c". One missing
// part makes the whole ID missing.
func composite(parts []finder) finder {
	return func(r *kgo.Record) (dedup.ID, dedup.MissingReason) {
		var joined []byte
		for _, part := range parts {
			id, missing := part(r)
			if missing != dedup.NotMissing {
				return "", missing
			}
			joined = binary.AppendUvarint(joined, uint64(len(id)))
			joined = append(joined, id...)
		}
		return shared(joined)
	}
}

// firstOf takes the first part that is not missing. Equal IDs are equal whichever part they are of:
// so a producer may move its ID from one place to another. If all are missing, the last one's
// reason counts. Behind a part of which nothing is known yet none is looked for.
func firstOf(parts []finder) finder {
	return func(r *kgo.Record) (id dedup.ID, missing dedup.MissingReason) {
		for _, part := range parts {
			id, missing = part(r)
			if missing == dedup.NotMissing || missing == dedup.MissingUnresolved {
				return id, missing
			}
		}
		return "", missing
	}
}
