package messageid

import (
	"context"
	"fmt"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/dedup/messageid/avropath"
	"github.com/kdedup/kdedup/dedup/messageid/protopath"
)

// Formats of values.
const (
	FormatJSON     = "json" // the default; needs no schema
	FormatAvro     = FromAvro
	FormatProtobuf = FromProtobuf
)

// documents reads a part of the records as JSON, by the schemas that they name.
type documents struct{ schemas }

// newDocuments is nil for JSON.
func newDocuments(format string, ofKey bool, registry Registry, news *news) (*documents, error) {
	switch format {
	case "", FormatJSON:
		return nil, nil
	case FormatAvro, FormatProtobuf:
	default:
		return nil, fmt.Errorf("format %q is not json, avro or protobuf", format)
	}
	d := &documents{schemas{ofKey: ofKey, framing: framingOf(registry), registry: registry,
		news: news, lack: "are looked at as a whole"}}
	d.compile = func(s Schema) compiled { return compileDocuments(format, s) }
	return d, nil
}

func compileDocuments(format string, s Schema) compiled {
	return guarded(format, s, func() (c compiled, err error) {
		if format == FormatAvro {
			read, err := avropath.CompileDocuments(s.Text, s.inOrder())
			if err != nil {
				return c, err
			}
			c.document = func(to []byte, f *frame, _ *compiled) ([]byte, bool) {
				return read.AppendJSON(to, f.body)
			}
			return c, nil
		}
		read, err := protopath.CompileDocuments(s.source())
		c.ordinals = read.Ordinals()
		c.document = func(to []byte, f *frame, c *compiled) ([]byte, bool) {
			var room [maxNested]int
			indexes, message, ok := f.message(room[:0], c)
			if !ok {
				return to, false
			}
			return read.AppendJSON(to, indexes, message)
		}
		return c, err
	})
}

// read appends the document.
func (d *documents) read(to []byte, r *kgo.Record) ([]byte, dedup.MissingReason) {
	var f frame
	schema, missing := d.of(r, &f)
	if missing != dedup.NotMissing {
		return to, missing
	}
	doc, ok := schema.document(to, &f, schema)
	if !ok {
		return to, dedup.MissingUnparsable
	}
	return doc, dedup.NotMissing
}

// unresolved reports whether the registry has to be asked first.
func (d *documents) unresolved(r *kgo.Record) bool {
	_, missing := d.of(r, new(frame))
	return missing == dedup.MissingUnresolved
}

// Reader reads values as the documents of which fingerprints compare the fields, or keys in the
// same way.
type Reader struct {
	ofKey     bool
	documents *documents
}

// NewReader takes FormatJSON, or a format with the registry that has its schemas.
func NewReader(format string, registry Registry) (*Reader, error) {
	documents, err := newDocuments(format, false, registry, new(news))
	return &Reader{documents: documents}, err
}

// NewKeyReader is NewReader for keys.
func NewKeyReader(format string, registry Registry) (*Reader, error) {
	documents, err := newDocuments(format, true, registry, new(news))
	return &Reader{true, documents}, err
}

// Document is the part of the record as JSON. It is false for one that is nothing of the kind. An
// error is the registry's.
func (d *Reader) Document(ctx context.Context, r *kgo.Record) ([]byte, bool, error) {
	switch {
	case d.documents == nil && d.ofKey:
		return r.Key, len(r.Key) > 0, nil
	case d.documents == nil:
		return r.Value, len(r.Value) > 0, nil
	}
	if d.documents.unresolved(r) {
		if err := d.documents.resolve(ctx, []*kgo.Record{r}); err != nil {
			return nil, false, err
		}
	}
	doc, missing := d.documents.read(nil, r)
	return doc, missing == dedup.NotMissing, nil
}
