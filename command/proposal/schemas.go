package proposal

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/dedup/messageid"
	"github.com/kdedup/kdedup/internal/jsonpath"
)

// Schemas is a registry, with its answers for the records of a sample: so that looking in a hundred
// places asks nobody again.
type Schemas struct {
	framing messageid.Framing
	known   map[messageid.Ref]messageid.Schema
	format  string // of the values that most of them are of; empty: they name no schemas
	ofKeys  string // the same of the keys
}

var (
	_ messageid.RefRegistry = (*Schemas)(nil)
	_ messageid.Framer      = (*Schemas)(nil)
)

// Framing implements messageid.Framer.
func (s *Schemas) Framing() messageid.Framing { return s.framing }

// Format is how most values are written: messageid.FromAvro, FromProtobuf or FromJSONSchema. It is
// empty where only keys name schemas.
func (s *Schemas) Format() string { return s.format }

// readsValues reports whether there are schemas by which values are read.
func (s *Schemas) readsValues() bool { return s != nil && s.format != "" }

// Schema implements messageid.Registry.
func (s *Schemas) Schema(ctx context.Context, id uint32) (messageid.Schema, error) {
	return s.SchemaOf(ctx, messageid.NumberRef(messageid.RefID, uint64(id)))
}

// SchemaOf implements messageid.RefRegistry.
func (s *Schemas) SchemaOf(_ context.Context, ref messageid.Ref) (messageid.Schema, error) {
	if schema, known := s.known[ref]; known {
		return schema, nil
	}
	return messageid.Schema{}, messageid.ErrUnknownSchema
}

// mostSchemas are asked for. Samples have a few.
const mostSchemas = 100

// errNamesNone is about records that say nothing of their schemas.
var errNamesNone = errors.New("no record names a schema as the registry's serializers do")

// Ask asks a registry for the schemas that the records name by one framing, of their values and of
// their keys. Without an error, most of those that name one can be read by them, whole.
func (s Sample) Ask(
	ctx context.Context, from messageid.RefRegistry, by messageid.Framing,
) (*Schemas, error) {
	all := &Schemas{framing: by, known: make(map[messageid.Ref]messageid.Schema)}
	values, err := all.ask(ctx, from, s.Records, messageid.PartValue)
	if err != nil {
		return nil, err
	}
	all.format = values.format
	keys, err := all.ask(ctx, from, s.Records, messageid.PartKey)
	if err != nil {
		return nil, err
	}
	if all.ofKeys = keys.format; all.ofKeys == messageid.FromJSONSchema && jsonKeys(s.Records) {
		all.ofKeys = ""
	}
	if serialized(s.Records, aValue).Type == "" {
		values = keys
	}
	switch {
	case values.format != "":
		return all, nil
	case values.err != nil:
		return nil, values.err
	}
	return nil, errNamesNone
}

// jsonKeys reports whether fields of the keys are found without their schemas.
func jsonKeys(records []*kgo.Record) bool {
	return slices.ContainsFunc(records, func(r *kgo.Record) bool {
		_, ok := jsonpath.Object(r.Key)
		return ok
	})
}

// asked is what came of asking for the schemas of one part of the records.
type asked struct {
	format string
	err    error // without a format, why there is none; nil: nothing names a schema
}

func (s *Schemas) ask(
	ctx context.Context, from messageid.RefRegistry, records []*kgo.Record, part string,
) (found asked, err error) {
	frames := messageid.NewFrames(s.framing, part)
	refs, types := make(map[messageid.Ref]bool), make(map[string]int)
	for _, r := range records {
		ref, _, names := frames.Of(r)
		if !names {
			continue
		}
		if !refs[ref] && len(refs) < mostSchemas {
			refs[ref] = true
			schema, err := schemaOf(ctx, from, ref)
			switch {
			case errors.Is(err, messageid.ErrUnknownSchema):
				found.err = fmt.Errorf("%w: %s, which records name",
					messageid.ErrUnknownSchema, ref)
			case err != nil:
				return found, err
			default:
				s.known[ref] = schema
			}
		}
		if schema, known := s.known[ref]; known {
			types[schema.Type]++
		}
	}
	format := ""
	for _, f := range []string{messageid.FromAvro, messageid.FromProtobuf,
		messageid.FromJSONSchema} {
		if types[f] > types[format] {
			format = f
		}
	}
	if format == "" {
		return found, nil
	}
	of, read, err := s.readable(ctx, records, part, format)
	if found.format = format; share(read, of) <= 0.5 {
		found = asked{err: fmt.Errorf("of %s %d can be read by the schemas that they name: another "+
			"registry's serializers may have written them", plural(of, "record", "records"), read)}
	}
	return found, err
}

func schemaOf(
	ctx context.Context, from messageid.RefRegistry, ref messageid.Ref,
) (messageid.Schema, error) {
	if ref.Kind == messageid.RefID {
		return from.Schema(ctx, uint32(ref.Number()))
	}
	return from.SchemaOf(ctx, ref)
}

// reader reads one part of the records as a document.
func (s *Schemas) reader(
	part, format string,
) (func(context.Context, *kgo.Record) ([]byte, bool, error), error) {
	if format == messageid.FromJSONSchema {
		frames := messageid.NewFrames(s.framing, part)
		return func(_ context.Context, r *kgo.Record) ([]byte, bool, error) {
			_, body, ok := frames.Of(r)
			return body, ok && json.Valid(body), nil
		}, nil
	}
	open := messageid.NewReader
	if part == messageid.PartKey {
		open = messageid.NewKeyReader
	}
	reader, err := open(format, s)
	if err != nil {
		return nil, err
	}
	return reader.Document, nil
}

// readable counts the records that have something to read in a part, and those that can be read.
func (s *Schemas) readable(
	ctx context.Context, records []*kgo.Record, part, format string,
) (of, read int, err error) {
	document, err := s.reader(part, format)
	if err != nil {
		return 0, 0, err
	}
	for _, r := range records {
		if part == messageid.PartValue && messageid.IsTombstone(r.Value) ||
			part == messageid.PartKey && len(r.Key) == 0 {
			continue
		}
		of++
		doc, ok, err := document(ctx, r)
		if err != nil {
			return of, read, err
		}
		if ok && len(doc) > 0 {
			read++
		}
	}
	return of, read, nil
}

// views are the records with their values and keys as documents, as far as schemas read them. A
// value that cannot be read is empty, a key stays as it is, and a tombstone stays one.
func (s *Schemas) views(ctx context.Context, records []*kgo.Record) ([]*kgo.Record, error) {
	views := make([]*kgo.Record, len(records))
	for i, r := range records {
		view := *r
		views[i] = &view
	}
	for _, part := range []struct{ name, format string }{
		{messageid.PartValue, s.format}, {messageid.PartKey, s.ofKeys}} {
		if part.format == "" {
			continue
		}
		document, err := s.reader(part.name, part.format)
		if err != nil {
			return nil, err
		}
		for i, r := range records {
			isKey := part.name == messageid.PartKey
			if !isKey && messageid.IsTombstone(r.Value) {
				continue
			}
			doc, ok, err := document(ctx, r)
			switch {
			case err != nil:
				return nil, err
			case isKey && ok:
				views[i].Key = doc
			case isKey:
			case ok:
				views[i].Value = doc
			default:
				views[i].Value = []byte{}
			}
		}
	}
	return views, nil
}

// views are the records with what schemas read of them as documents. Without schemas, or where one
// of them cannot be read after all, they are the records themselves.
func (s Sample) views() []*kgo.Record {
	if s.Schemas == nil {
		return s.Records
	}
	views, err := s.Schemas.views(context.Background(), s.Records) // from memory
	if err != nil {
		return s.Records
	}
	return views
}

// Differs reports whether others were read for the same numbers.
func (s *Schemas) Differs(from *Schemas) bool {
	texts := make(map[uint64]string)
	for ref, schema := range from.known {
		texts[ref.Number()] = schema.Text
	}
	for ref, schema := range s.known {
		if text, both := texts[ref.Number()]; both && text != schema.Text {
			return true
		}
	}
	return false
}
