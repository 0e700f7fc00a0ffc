package messageid

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/dedup/messageid/avropath"
	"github.com/kdedup/kdedup/dedup/messageid/protopath"
	"github.com/kdedup/kdedup/internal/jsonpath"
)

// Registry has the schemas that records name by an ID. It is safe for concurrent use.
type Registry interface {
	// Schema returns the schema with an ID. After an error that does not wrap ErrUnknownSchema the
	// caller asks again.
	Schema(ctx context.Context, id uint32) (Schema, error)
}

// RefRegistry is a Registry that has schemas by other names than its own numbers, too.
type RefRegistry interface {
	Registry
	// SchemaOf is Schema for any name. One of a kind that the registry does not have is unknown.
	SchemaOf(ctx context.Context, ref Ref) (Schema, error)
}

// NamedRegistry is a Registry that has schemas by their full names, too.
type NamedRegistry interface {
	// SchemaNamed is Schema for the name of a record or a message.
	SchemaNamed(ctx context.Context, name string) (Schema, error)
}

// OfValues is the registry for a topic whose values name no schema, and are all of the one with
// this full name. It leaves a registry that is nil as it is.
func OfValues(r Registry, name string) Registry {
	if r == nil || name == "" {
		return r
	}
	return ofValues{r, name}
}

type ofValues struct {
	Registry
	name string
}

func (o ofValues) Framing() Framing {
	f := framingOf(o.Registry)
	f.Value = o.name
	return f
}

func (o ofValues) SchemaNamed(ctx context.Context, name string) (Schema, error) {
	if named, can := o.Registry.(NamedRegistry); can {
		return named.SchemaNamed(ctx, name)
	}
	return Schema{}, fmt.Errorf("%w: it has none by name", ErrUnknownSchema)
}

func (o ofValues) SchemaOf(ctx context.Context, ref Ref) (Schema, error) {
	if named, can := o.Registry.(RefRegistry); can {
		return named.SchemaOf(ctx, ref)
	}
	return Schema{}, fmt.Errorf("%w: it is asked by numbers only", ErrUnknownSchema)
}

// Framer is a Registry that knows how records name its schemas.
type Framer interface{ Framing() Framing }

func framingOf(r Registry) (f Framing) {
	if framer, knows := r.(Framer); knows {
		f = framer.Framing()
	}
	return f
}

// ErrUnknownSchema is wrapped by what a Registry returns if it says that it has no such schema.
var ErrUnknownSchema = errors.New("the schema registry has no schema with this ID")

// Schema is what a registry has under an ID, which never changes.
type Schema struct {
	Type string // FromAvro, FromProtobuf or FromJSONSchema
	Text string
	// References are the schemas that it needs, each behind those that it needs itself.
	References []Reference
	// Set is a descriptor set in the place of the text of Protobuf, and Message the full name of
	// the only message that counts in it. Without a name it is the set's last file, as a compiler
	// writes it.
	Set     []byte
	Message string
}

// Reference is a schema under the name by which another one imports it.
type Reference struct{ Name, Text string }

// Kinds of schema, as Source.From names them.
const (
	FromAvro       = "avro"
	FromProtobuf   = "protobuf"
	FromJSONSchema = "json_schema"
)

// askedAgain is how long a registry's word that it has no such schema holds: one that a follower of
// the registry did not know yet may be known then.
const askedAgain = time.Minute

// compiled is what is known of a schema ID.
type compiled struct {
	missing dedup.MissingReason // of all records; NotMissing: there is a plan
	until   time.Time           // up to when it holds; zero: for ever
	avro    *avropath.Plan
	proto   *protopath.Schema
	// document appends a record as JSON, in place of the plans
	document func(to []byte, f *frame, c *compiled) ([]byte, bool)
	ordinals [][]int // of Protobuf: the messages' indexes, as Glue's serializers count them
	err      error   // why there is none of these
}

// compile makes a plan of a schema. An error is about the schema, and the same the next time.
func compile(kind string, path jsonpath.Path, s Schema) compiled {
	return guarded(kind, s, func() (c compiled, err error) {
		if kind == FromAvro {
			c.avro, err = avropath.Compile(s.Text, s.inOrder(), path)
		} else {
			c.proto, err = protopath.Compile(s.source(), path)
			c.ordinals = c.proto.Ordinals()
		}
		return c, err
	})
}

func guarded(kind string, s Schema, compile func() (compiled, error)) (c compiled) {
	defer func() {
		// a defect of a parser, or a schema that was made to find one, holds up no other schema
		if p := recover(); p != nil {
			c = unusable(fmt.Errorf("it cannot be read: %v", p))
		}
	}()
	if s.Type != kind {
		return unusable(fmt.Errorf("it is of type %s, not %s", s.Type, kind))
	}
	c, err := compile()
	if err != nil {
		return unusable(err)
	}
	return c
}

func (s Schema) inOrder() []string {
	texts := make([]string, len(s.References))
	for i, r := range s.References {
		texts[i] = r.Text
	}
	return texts
}

func (s Schema) byName() map[string]string {
	texts := make(map[string]string, len(s.References))
	for _, r := range s.References {
		texts[r.Name] = r.Text
	}
	return texts
}

func (s Schema) source() protopath.Source {
	return protopath.Source{Text: s.Text, References: s.byName(), Set: s.Set, Message: s.Message}
}

func unusable(err error) compiled { return compiled{missing: missingFor(err), err: err} }

// missingFor is why records of a schema have no ID.
func missingFor(err error) dedup.MissingReason {
	switch {
	case errors.Is(err, avropath.ErrNoField), errors.Is(err, protopath.ErrNoField):
		return dedup.MissingAbsent
	case errors.Is(err, avropath.ErrNoID), errors.Is(err, protopath.ErrNoID):
		return dedup.MissingUnsupportedType
	}
	return dedup.MissingUnusableSchema
}

// CheckSchema returns an error if no record that was written with the schema can have an ID in the
// source's place.
func CheckSchema(s Source, schema Schema) error {
	if s.From == FromJSONSchema {
		if _, err := jsonpath.Parse(s.Path); err != nil {
			return fmt.Errorf("path %q %w", s.Path, err)
		}
		if schema.Type != s.From {
			return fmt.Errorf("it is of type %s, not %s", schema.Type, s.From)
		}
		return nil
	}
	path, err := s.framedPath()
	if err != nil {
		return err
	}
	c := compile(s.From, path, schema)
	if c.err == nil && c.proto != nil {
		return c.proto.Any()
	}
	return c.err
}

// CheckField is CheckSchema for a field that is compared and need not be fit for an ID.
func CheckField(s Source, schema Schema) error {
	err := CheckSchema(s, schema)
	if errors.Is(err, avropath.ErrNoID) || errors.Is(err, protopath.ErrNoID) {
		return nil
	}
	return err
}
