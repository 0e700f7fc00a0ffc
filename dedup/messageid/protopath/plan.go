package protopath

import (
	"errors"
	"fmt"
	"strconv"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/kdedup/kdedup/internal/jsonpath"
)

// ErrNoField is wrapped where the message has no field at the path.
var ErrNoField = errors.New("the schema has no such field")

// ErrNoID is wrapped where the path leads to a type that has no text of its own.
var ErrNoID = errors.New("the field cannot be an ID")

// maxSteps bounds what a plan keeps in mind while it reads.
const maxSteps = 32

// Plan finds the field. It is safe for concurrent use.
type Plan struct{ steps []step }

// step is a field on the way.
type step struct {
	number protowire.Number
	kind   protoreflect.Kind
	// of an element or an entry; the next segment of the path is used up by it
	list  bool
	index int
	entry bool
	key   string
	keys  protoreflect.Kind
	// other fields of its oneof: the last one that is written counts
	rivals []protowire.Number
	// the default value is not written, so it stands for no value
	implicit bool
	// the value of a message that exists to hold it: where the message is, its default value is
	// one, too
	wrapped bool
	symbols protoreflect.EnumValueDescriptors
}

func compile(m protoreflect.MessageDescriptor, path jsonpath.Path) (*Plan, error) {
	p := &Plan{}
	for at := 0; at < len(path); at++ {
		if m == nil {
			return nil, fmt.Errorf("%w: what stands before %s is no message", ErrNoField,
				path[:at+1])
		}
		field := fieldOf(m, path[at].Name)
		if field == nil {
			return nil, fmt.Errorf("%w: message %s has no field %s", ErrNoField, m.FullName(),
				path[at].Name)
		}
		s := newStep(field)
		if s.list || s.entry {
			if at++; at == len(path) {
				return nil, fmt.Errorf("%w: %s is repeated", ErrNoID, path)
			}
			if err := s.choose(path[at]); err != nil {
				return nil, fmt.Errorf("%w: %s", err, path[:at+1])
			}
		}
		p.steps, m = append(p.steps, s), inner(field)
	}
	if isWrapper(m) {
		s := newStep(m.Fields().ByName("value"))
		s.implicit, s.wrapped = false, true
		p.steps, m = append(p.steps, s), nil
	}
	switch {
	case len(p.steps) == 0:
		return nil, fmt.Errorf("%w: message %s is no wrapper of Google's, such as "+
			"google.protobuf.StringValue", ErrNoID, m.FullName())
	case m != nil, p.steps[len(p.steps)-1].kind == protoreflect.BoolKind:
		return nil, fmt.Errorf("%w: %s is a %s", ErrNoID, path, p.steps[len(p.steps)-1].kind)
	}
	return p, nil
}

// isWrapper is about the types that Google gives a scalar with presence, such as StringValue.
func isWrapper(m protoreflect.MessageDescriptor) bool {
	if m == nil {
		return false
	}
	switch m.FullName() {
	case "google.protobuf.StringValue", "google.protobuf.BytesValue",
		"google.protobuf.Int32Value", "google.protobuf.Int64Value",
		"google.protobuf.UInt32Value", "google.protobuf.UInt64Value",
		"google.protobuf.FloatValue", "google.protobuf.DoubleValue", "google.protobuf.BoolValue":
		field := m.Fields().ByName("value")
		return field != nil && field.Number() == 1 && inner(field) == nil && !field.IsList()
	}
	return false
}

// fieldOf takes the name of the schema and the one of JSON.
func fieldOf(m protoreflect.MessageDescriptor, name string) protoreflect.FieldDescriptor {
	if field := m.Fields().ByName(protoreflect.Name(name)); field != nil {
		return field
	}
	return m.Fields().ByJSONName(name)
}

func newStep(field protoreflect.FieldDescriptor) step {
	s := step{number: field.Number(), kind: field.Kind(), list: field.IsList(),
		entry:    field.IsMap(),
		implicit: !field.HasPresence() && !field.IsList() && !field.IsMap()}
	if s.entry {
		s.kind, s.keys = field.MapValue().Kind(), field.MapKey().Kind()
		field = field.MapValue()
	}
	if field.Enum() != nil {
		s.symbols = field.Enum().Values()
	}
	if one := field.ContainingOneof(); one != nil {
		for i := range one.Fields().Len() {
			if other := one.Fields().Get(i); other != field {
				s.rivals = append(s.rivals, other.Number())
			}
		}
	}
	return s
}

// choose takes the element or the entry that a segment names.
func (s *step) choose(segment jsonpath.Step) error {
	if s.entry {
		s.key = segment.Name
		return nil
	}
	if s.index = segment.Index; s.index < 0 {
		return fmt.Errorf("%w: an element has an index", ErrNoField)
	}
	return nil
}

// inner is the message in a field, in its elements or in its entries.
func inner(field protoreflect.FieldDescriptor) protoreflect.MessageDescriptor {
	if field.IsMap() {
		return field.MapValue().Message()
	}
	return field.Message()
}

func (s *step) isMessage() bool {
	return s.kind == protoreflect.MessageKind || s.kind == protoreflect.GroupKind
}

// wireType is how values of the kind are written.
func wireType(kind protoreflect.Kind) protowire.Type {
	switch kind {
	case protoreflect.Fixed32Kind, protoreflect.Sfixed32Kind, protoreflect.FloatKind:
		return protowire.Fixed32Type
	case protoreflect.Fixed64Kind, protoreflect.Sfixed64Kind, protoreflect.DoubleKind:
		return protowire.Fixed64Type
	case protoreflect.StringKind, protoreflect.BytesKind, protoreflect.MessageKind:
		return protowire.BytesType
	case protoreflect.GroupKind:
		return protowire.StartGroupType
	}
	return protowire.VarintType
}

func (s *step) symbol(number protoreflect.EnumNumber) []byte {
	if value := s.symbols.ByNumber(number); value != nil {
		return []byte(value.Name())
	}
	return strconv.AppendInt(nil, int64(number), 10)
}
