// Package protopath finds one field in the bytes of a Protobuf message. A message type and a path
// become a plan once; the plan then passes the fields on its way without decoding the message. Who
// needs all of a message reads it as a JSON document.
package protopath

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/bufbuild/protocompile"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/kdedup/kdedup/internal/jsonpath"
)

// Schema has a plan for each message of a file. It is safe for concurrent use.
type Schema struct {
	messages []message
	ordinals [][]int
}

// message is a type with those that are declared in it, in their order: that is how records name
// their type.
type message struct {
	plan  *Plan
	err   error // why there is no plan
	inner []message
}

// mainFile is a name that nobody imports.
const mainFile = "kdedup/of/the/record.proto"

// found is a file as it was written, or as some serializers register it: what a compiler made of
// it, in base64. Confluent's registry makes a text of that, others do not.
func found(name, text string) protocompile.SearchResult {
	compiled := new(descriptorpb.FileDescriptorProto)
	data, err := base64.StdEncoding.DecodeString(text)
	if err != nil || len(data) == 0 || proto.Unmarshal(data, compiled) != nil {
		return protocompile.SearchResult{Source: strings.NewReader(text)}
	}
	compiled.Name = proto.String(name) // by which it is imported
	nameForJSON(compiled.Extension, compiled.MessageType)
	return protocompile.SearchResult{Proto: compiled}
}

// nameForJSON gives fields the names that compilers give them and descriptors may lack.
func nameForJSON(
	fields []*descriptorpb.FieldDescriptorProto, messages []*descriptorpb.DescriptorProto,
) {
	for _, field := range fields {
		if field.JsonName == nil {
			field.JsonName = proto.String(camel(field.GetName()))
		}
	}
	for _, m := range messages {
		nameForJSON(slices.Concat(m.Field, m.Extension), m.NestedType)
	}
}

// camel is order_id as orderId.
func camel(name string) string {
	text := make([]byte, 0, len(name))
	for i := range len(name) {
		switch c := name[i]; {
		case c == '_':
		case i > 0 && name[i-1] == '_' && 'a' <= c && c <= 'z':
			text = append(text, c-('a'-'A'))
		default:
			text = append(text, c)
		}
	}
	return string(text)
}

// Compile makes the plans of a source.
func Compile(s Source, path jsonpath.Path) (*Schema, error) {
	if len(path) > maxSteps {
		return nil, fmt.Errorf("%w: a path has at most %d segments", ErrNoField, maxSteps)
	}
	_, messages, err := s.parse()
	if err != nil {
		return nil, err
	}
	return &Schema{messagesOf(messages, path), ordinalsOf(messages)}, nil
}

func parse(schema string, references map[string]string) (protoreflect.FileDescriptor, error) {
	find := func(name string) (protocompile.SearchResult, error) {
		text, known := references[name]
		if name == mainFile {
			text, known = schema, true
		}
		if !known {
			return protocompile.SearchResult{}, fmt.Errorf("%s is no reference of the schema", name)
		}
		return found(name, text), nil
	}
	compiler := protocompile.Compiler{
		Resolver: protocompile.WithStandardImports(protocompile.ResolverFunc(find))}
	files, err := compiler.Compile(context.Background(), mainFile)
	if err != nil {
		return nil, withRemedy(err)
	}
	return files[0], nil
}

func messagesOf(types []protoreflect.MessageDescriptor, path jsonpath.Path) []message {
	all := make([]message, len(types))
	for i := range all {
		all[i].plan, all[i].err = compile(types[i], path)
		all[i].inner = messagesOf(listed(types[i].Messages()), path)
	}
	return all
}

// ErrNoMessage says that a record names a type that its schema does not have.
var ErrNoMessage = errors.New("the schema has no such message")

// Plan is that of the message to which the indexes lead: the position of a type in the file, of one
// in that type, and so on. The error says why there is none.
func (s *Schema) Plan(indexes []int) (*Plan, error) {
	types := s.messages
	for i, index := range indexes {
		if index < 0 || index >= len(types) {
			return nil, ErrNoMessage
		}
		if i == len(indexes)-1 {
			return types[index].plan, types[index].err
		}
		types = types[index].inner
	}
	return nil, ErrNoMessage
}

// Any reports whether at least one message has the field. The error is that of the first.
func (s *Schema) Any() error {
	err, found := anyOf(s.messages)
	if found {
		return nil
	}
	if err == nil {
		return fmt.Errorf("%w: it has no messages", ErrNoField)
	}
	return err
}

func anyOf(all []message) (first error, found bool) {
	for i := range all {
		if all[i].plan != nil {
			return nil, true
		}
		if first == nil {
			first = all[i].err
		}
		if _, found := anyOf(all[i].inner); found {
			return nil, true
		}
	}
	return first, false
}
