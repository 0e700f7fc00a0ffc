package messageid

import (
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/internal/jsonpath"
)

// framed finds a field of a record behind the ID of its schema.
type framed struct {
	schemas
	kind string
	path jsonpath.Path
}

func newFramed(s Source, news *news) (*framed, error) {
	path, err := s.framedPath()
	if err != nil {
		return nil, err
	}
	if s.Part != "" && s.Part != PartValue && s.Part != PartKey {
		return nil, fmt.Errorf("part %q is not value or key", s.Part)
	}
	f := &framed{kind: s.From, path: path, schemas: schemas{ofKey: s.Part == PartKey,
		framing: framingOf(s.Registry), registry: s.Registry, news: news,
		lack: "have no message ID"}}
	f.compile = func(s Schema) compiled { return compile(f.kind, f.path, s) }
	return f, nil
}

// Whole is the path of a key or a value that is one scalar: in Avro a string, say, or a number, in
// Protobuf a wrapper of Google's.
const Whole = "$"

// framedPath is empty for the whole of a key or a value.
func (s Source) framedPath() (jsonpath.Path, error) {
	if (s.From == FromAvro || s.From == FromProtobuf) && s.Path == Whole {
		return nil, nil
	}
	return onePath(s.Path)
}

// onePath is within one document.
func onePath(text string) (jsonpath.Path, error) {
	paths, err := jsonpath.Parse(text)
	switch {
	case err != nil:
		return nil, fmt.Errorf("path %q %w", text, err)
	case len(paths) > 1:
		return nil, fmt.Errorf("path %q leads into a document within a string", text)
	}
	return paths[0], nil
}

// String is the same for all spellings of the path.
func (f *framed) String() string {
	if f.ofKey {
		return f.kind + "_key:" + strconv.Quote(f.path.String())
	}
	return f.kind + ":" + strconv.Quote(f.path.String())
}

func (f *framed) find(r *kgo.Record) (dedup.ID, dedup.MissingReason) {
	var frame frame
	schema, missing := f.of(r, &frame)
	if missing != dedup.NotMissing {
		return "", missing
	}
	var text []byte
	if schema.avro != nil {
		text, missing = schema.avro.Find(frame.body)
	} else {
		text, missing = f.message(&frame, schema)
	}
	if missing != dedup.NotMissing {
		return "", missing
	}
	return shared(text)
}

func (f *framed) message(frame *frame, schema *compiled) ([]byte, dedup.MissingReason) {
	var room [maxNested]int
	indexes, message, ok := frame.message(room[:0], schema)
	if !ok {
		return nil, dedup.MissingUnparsable
	}
	plan, err := schema.proto.Plan(indexes)
	if err != nil {
		f.tell(frame.ref, err)
		return nil, missingFor(err)
	}
	return plan.Find(message)
}

// maxNested is how deep types lie in each other, at most, where a record names its own.
const maxNested = 16

// messageOf reads which of a Protobuf schema's messages follows: how many indexes, and the indexes.
// None stands for the first message.
func messageOf(to []int, body []byte) (indexes []int, message []byte, ok bool) {
	count, n := binary.Varint(body)
	if n <= 0 || count < 0 || count > maxNested {
		return nil, nil, false
	}
	body = body[n:]
	for range count {
		index, n := binary.Varint(body)
		if n <= 0 || index != int64(int32(index)) {
			return nil, nil, false
		}
		to, body = append(to, int(index)), body[n:]
	}
	if count == 0 {
		to = append(to, 0)
	}
	return to, body, true
}

// newJSONSchema finds a field of a document that needs no schema to be read, behind the ID of one.
func newJSONSchema(s Source, all *gathered) (finder, string, error) {
	document, err := newJSONSource(s, new(sighting))
	if err != nil {
		return nil, "", err
	}
	frames := &schemas{ofKey: document.ofKey, framing: framingOf(s.Registry), news: &all.news}
	name := strings.Replace(document.String(), "json", FromJSONSchema, 1)
	return func(r *kgo.Record) (dedup.ID, dedup.MissingReason) {
		var f frame
		missing := frames.open(r, &f)
		switch {
		case missing != dedup.NotMissing:
			return "", missing
		case !f.unpack():
			return "", dedup.MissingUnparsable
		case f.ordinal:
			return document.find(&kgo.Record{Key: f.body, Value: f.body})
		}
		return document.find(r)
	}, name, nil
}
