package proposal

import (
	"encoding/json"
	"unicode/utf8"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/dedup/messageid"
	"github.com/kdedup/kdedup/internal/jsonpath"
)

// Place is where a record may carry its ID, as the configuration names it.
type Place struct{ From, Name, Path, Part string }

// Source is the place for an extractor.
func (p Place) Source() messageid.Source {
	return messageid.Source{From: p.From, Name: p.Name, Path: p.Path, Part: p.Part}
}

// String is the place for people.
func (p Place) String() string {
	switch {
	case p.From == "header":
		return "header " + p.Name
	case p.From == "json" && p.Part == messageid.PartKey:
		return "JSON field " + p.Path + " of the key"
	case p.From == "json":
		return "JSON field " + p.Path
	case p.From == "value_hash":
		return "the hash of the value"
	case p.behindSchema() && p.Path == messageid.Whole:
		return "whole " + p.part() + " as " + formatNames[p.From]
	case p.behindSchema() && p.Part == messageid.PartKey:
		return formatNames[p.From] + " field " + p.Path + " of the key"
	case p.behindSchema():
		return formatNames[p.From] + " field " + p.Path
	}
	return p.From
}

// isKey reports whether it is all of the key.
func (p Place) isKey() bool {
	return p == keyPlace || p.Path == messageid.Whole && p.Part == messageid.PartKey
}

func (p Place) part() string {
	if p.Part == messageid.PartKey {
		return messageid.PartKey
	}
	return messageid.PartValue
}

var formatNames = map[string]string{messageid.FromAvro: "Avro", messageid.FromProtobuf: "Protobuf",
	messageid.FromJSONSchema: "JSON"}

// behindSchema reports whether the record names a schema for it.
func (p Place) behindSchema() bool { return formatNames[p.From] != "" }

// ofValue reports whether a tombstone lacks the place whatever its producer does.
func (p Place) ofValue() bool {
	return (p.From == "json" || p.behindSchema()) && p.Part != messageid.PartKey ||
		p.From == "value_hash"
}

// Finder knows one kind of place. It tells only which places a record has: what stands there is the
// extractor's to say, so that nothing is proposed that kdedup would read otherwise.
type Finder interface {
	Find(r *kgo.Record, found func(Place))
}

// Finders are all that there are.
func Finders() []Finder {
	return []Finder{headers{}, wholeKey{}, fields{}, fields{ofKey: true}}
}

type headers struct{}

func (headers) Find(r *kgo.Record, found func(Place)) {
	for _, h := range r.Headers {
		if h.Key != "" && utf8.ValidString(h.Key) {
			found(Place{From: "header", Name: h.Key})
		}
	}
}

type wholeKey struct{}

func (wholeKey) Find(r *kgo.Record, found func(Place)) {
	if len(r.Key) > 0 {
		found(Place{From: "key"})
	}
}

// fields are those of a JSON document, or of the one that a value with a schema is.
type fields struct {
	ofKey bool
	from  string // json if empty
}

// fields are those of the parts that schemas read.
func (s *Schemas) fields() (all []fields) {
	if s.readsValues() {
		all = append(all, fields{from: s.format})
	}
	if s != nil && s.ofKeys != "" {
		all = append(all, fields{from: s.ofKeys, ofKey: true})
	}
	return all
}

// isBare reports whether a document is a string or a number, of which nothing else is a part.
func isBare(doc []byte) bool {
	return len(doc) > 0 && (doc[0] == '"' || doc[0] == '-' || doc[0] >= '0' && doc[0] <= '9')
}

const mostDocuments = 2 // in strings of each other

// Find leaves out the elements of arrays: an ID is seldom at one place of a list.
func (f fields) Find(r *kgo.Record, found func(Place)) {
	doc, part, documents := r.Value, "", mostDocuments
	from := f.from
	switch from {
	case "":
		from = "json"
	case messageid.FromAvro, messageid.FromProtobuf:
		documents = 1
	}
	if f.ofKey {
		doc, part = r.Key, messageid.PartKey
	}
	object, ok := jsonpath.Object(doc)
	if !ok {
		if from == messageid.FromAvro && isBare(doc) {
			found(Place{From: from, Path: messageid.Whole, Part: part})
		}
		return
	}
	jsonpath.EachField(object, documents, func(path string, value any) {
		switch value.(type) {
		case string, json.Number:
			found(Place{From: from, Path: path, Part: part})
		}
	})
}
