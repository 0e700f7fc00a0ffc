package proposal

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/dedup/messageid"
)

// Schemas is a registry, with its answers for the records of a sample: so that looking in a hundred
// places asks nobody again.
type Schemas struct {
	framing messageid.Framing
	known   map[messageid.Ref]messageid.Schema
	format  string // of the values that most of them are of
}

var (
	_ messageid.RefRegistry = (*Schemas)(nil)
	_ messageid.Framer      = (*Schemas)(nil)
)

// Framing implements messageid.Framer.
func (s *Schemas) Framing() messageid.Framing { return s.framing }

// Format is how most values are written: messageid.FromAvro, FromProtobuf or FromJSONSchema.
func (s *Schemas) Format() string { return s.format }

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

// Ask asks a registry for the schemas that the records name by one framing. Without an error, most
// of the records can be read by them, whole.
func (s Sample) Ask(
	ctx context.Context, from messageid.RefRegistry, by messageid.Framing,
) (*Schemas, error) {
	frames := messageid.NewFrames(by)
	all := &Schemas{framing: by, known: make(map[messageid.Ref]messageid.Schema)}
	asked, types := make(map[messageid.Ref]bool), make(map[string]int)
	var unknown messageid.Ref
	for _, r := range s.Records {
		ref, _, names := frames.Of(r)
		if !names {
			continue
		}
		if !asked[ref] && len(asked) < mostSchemas {
			asked[ref] = true
			schema, err := schemaOf(ctx, from, ref)
			switch {
			case errors.Is(err, messageid.ErrUnknownSchema):
				unknown = ref
			case err != nil:
				return nil, err
			default:
				all.known[ref] = schema
			}
		}
		if schema, known := all.known[ref]; known {
			types[schema.Type]++
		}
	}
	for _, format := range []string{messageid.FromAvro, messageid.FromProtobuf,
		messageid.FromJSONSchema} {
		if types[format] > types[all.format] {
			all.format = format
		}
	}
	switch {
	case len(asked) == 0:
		return nil, errNamesNone
	case all.format == "":
		return nil, fmt.Errorf("%w: %s, which records name", messageid.ErrUnknownSchema, unknown)
	}
	views, err := all.views(ctx, s.Records)
	if err != nil {
		return nil, err
	}
	if of, read := readable(views); share(read, of) <= 0.5 {
		return nil, fmt.Errorf("of %s %d can be read by the schemas that they name: another "+
			"registry's serializers may have written them", plural(of, "record", "records"), read)
	}
	return all, nil
}

func schemaOf(
	ctx context.Context, from messageid.RefRegistry, ref messageid.Ref,
) (messageid.Schema, error) {
	if ref.Kind == messageid.RefID {
		return from.Schema(ctx, uint32(ref.Number()))
	}
	return from.SchemaOf(ctx, ref)
}

// views are the records with their values as documents. A value that cannot be read is empty, and
// a tombstone stays one.
func (s *Schemas) views(ctx context.Context, records []*kgo.Record) ([]*kgo.Record, error) {
	document := s.body
	if s.format != messageid.FromJSONSchema {
		reader, err := messageid.NewReader(s.format, s)
		if err != nil {
			return nil, err
		}
		document = reader.Document
	}
	views := make([]*kgo.Record, len(records))
	for i, r := range records {
		view := *r
		if views[i] = &view; messageid.IsTombstone(r.Value) {
			continue
		}
		doc, ok, err := document(ctx, r)
		if err != nil {
			return nil, err
		}
		if view.Value = doc; !ok {
			view.Value = []byte{}
		}
	}
	return views, nil
}

// views are the records with their values as documents. Without schemas, or where one of them
// cannot be read after all, they are the records themselves.
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

// body is a document that stands behind the name of its schema.
func (s *Schemas) body(_ context.Context, r *kgo.Record) ([]byte, bool, error) {
	_, body, ok := messageid.NewFrames(s.framing).Of(r)
	return body, ok && json.Valid(body), nil
}

func readable(views []*kgo.Record) (of, read int) {
	for _, view := range views {
		if !messageid.IsTombstone(view.Value) {
			of++
			if len(view.Value) > 0 {
				read++
			}
		}
	}
	return of, read
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
