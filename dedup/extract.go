package dedup

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unsafe"

	"github.com/twmb/franz-go/pkg/kgo"
)

// MaxIDBytes is the length up to which an ID is stored as it is. A longer one is replaced by
// "sha256:" and the 32 bytes of its SHA-256.
const MaxIDBytes = 4096

const longIDPrefix = "sha256:"

// Source says where records carry their ID.
type Source struct {
	From  string   // header, key, json, value_hash or composite
	Name  string   // of the header
	Path  string   // of the JSON field: order.id, items.0.id; a literal dot is written \.
	Parts []Source // of a composite, two or more
}

// Extractor finds the message ID of a record. It is safe for concurrent use.
type Extractor struct {
	find func(*kgo.Record) (ID, MissingReason)
	name string
}

// NewExtractor checks the source.
func NewExtractor(s Source) (*Extractor, error) {
	e, err := extractor(s)
	if err != nil {
		return nil, fmt.Errorf("message_id: %w", err)
	}
	return e, nil
}

func extractor(s Source) (*Extractor, error) {
	switch s.From {
	case "header":
		if s.Name == "" {
			return nil, errors.New("from header needs a name")
		}
		return &Extractor{fromHeader(s.Name), "header:" + strconv.Quote(s.Name)}, nil
	case "key":
		return &Extractor{fromKey, "key"}, nil
	case "value_hash":
		return &Extractor{fromValueHash, "value_hash"}, nil
	case "json":
		path, err := parseJSONPath(s.Path)
		if err != nil {
			return nil, err
		}
		return &Extractor{fromJSON(path), "json:" + strconv.Quote(s.Path)}, nil
	case "composite":
		return composite(s.Parts)
	}
	return nil, fmt.Errorf("from %q is not header, key, json, value_hash or composite", s.From)
}

// Extract returns the record's ID, or why it has none. The ID may share memory with the record.
func (e *Extractor) Extract(r *kgo.Record) (ID, MissingReason) {
	id, missing := e.find(r)
	if missing != NotMissing {
		return "", missing
	}
	return bounded(id), NotMissing
}

// NewID is the ID that a record with these bytes in the place of its ID has.
func NewID(text []byte) ID { return bounded(ID(text)) }

func bounded(id ID) ID {
	if len(id) <= MaxIDBytes {
		return id
	}
	sum := sha256.Sum256([]byte(id))
	return ID(longIDPrefix + string(sum[:]))
}

// String describes the source without ambiguity. It is stored with a scope: claims that were made
// with another one mean nothing.
func (e *Extractor) String() string { return e.name }

// shared makes an ID of bytes that nobody will modify.
func shared(b []byte) (ID, MissingReason) {
	switch {
	case b == nil:
		return "", MissingNull
	case len(b) == 0:
		return "", MissingEmpty
	}
	return ID(unsafe.String(unsafe.SliceData(b), len(b))), NotMissing
}

// fromHeader takes the first header of that name: what the producer set, not what a proxy or an
// interceptor appended behind it.
func fromHeader(name string) func(*kgo.Record) (ID, MissingReason) {
	return func(r *kgo.Record) (ID, MissingReason) {
		for i := range r.Headers {
			if r.Headers[i].Key == name {
				return shared(r.Headers[i].Value)
			}
		}
		return "", MissingAbsent
	}
}

func fromKey(r *kgo.Record) (ID, MissingReason) { return shared(r.Key) }

// fromValueHash makes equal contents equal IDs. A tombstone and an empty value have no content.
func fromValueHash(r *kgo.Record) (ID, MissingReason) {
	if _, missing := shared(r.Value); missing != NotMissing {
		return "", missing
	}
	sum := sha256.Sum256(r.Value)
	return ID(sum[:]), NotMissing
}

// composite joins its parts, each behind its length, so that "a","bc" is not "ab","c". One missing
// part makes the whole ID missing.
func composite(sources []Source) (*Extractor, error) {
	if len(sources) < 2 {
		return nil, errors.New("composite needs at least two parts")
	}
	var (
		parts []*Extractor
		names []string
	)
	for _, s := range sources {
		part, err := extractor(s)
		if err != nil {
			return nil, fmt.Errorf("composite: %w", err)
		}
		parts, names = append(parts, part), append(names, part.name)
	}
	find := func(r *kgo.Record) (ID, MissingReason) {
		var joined []byte
		for _, part := range parts {
			id, missing := part.find(r)
			if missing != NotMissing {
				return "", missing
			}
			joined = binary.AppendUvarint(joined, uint64(len(id)))
			joined = append(joined, id...)
		}
		return shared(joined)
	}
	return &Extractor{find, "composite(" + strings.Join(names, ",") + ")"}, nil
}
