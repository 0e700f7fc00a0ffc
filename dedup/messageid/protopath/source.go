package protopath

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
)

// Source is a file with its messages: its text, or what a compiler made of it.
type Source struct {
	Text       string
	References map[string]string // by the names by which the text imports them
	// Set is a FileDescriptorSet with all that is imported, in the place of the text. Message is
	// the full name of the only message that counts; empty: those of the last file count, which is
	// where a compiler writes the file that it was asked for.
	Set     []byte
	Message string
}

// parse returns the file, and the messages that records count.
func (s Source) parse() (
	protoreflect.FileDescriptor, []protoreflect.MessageDescriptor, error,
) {
	if len(s.Set) > 0 {
		return s.fromSet()
	}
	file, err := parse(s.Text, s.References)
	if err != nil {
		return nil, nil, err
	}
	return file, listed(file.Messages()), nil
}

func listed(types protoreflect.MessageDescriptors) []protoreflect.MessageDescriptor {
	all := make([]protoreflect.MessageDescriptor, types.Len())
	for i := range all {
		all[i] = types.Get(i)
	}
	return all
}

func (s Source) fromSet() (
	protoreflect.FileDescriptor, []protoreflect.MessageDescriptor, error,
) {
	set := new(descriptorpb.FileDescriptorSet)
	if err := proto.Unmarshal(s.Set, set); err != nil || len(set.File) == 0 {
		return nil, nil, errors.New("it is no descriptor set: make one with protoc " + protocFlags)
	}
	files, err := protodesc.NewFiles(set)
	if err != nil {
		return nil, nil, fmt.Errorf("a descriptor set needs all that its files import, as protoc "+
			"%s writes it: %w", protocFlags, err)
	}
	if s.Message == "" {
		file, err := files.FindFileByPath(set.File[len(set.File)-1].GetName())
		if err != nil {
			return nil, nil, err
		}
		return file, listed(file.Messages()), nil
	}
	found, err := files.FindDescriptorByName(protoreflect.FullName(s.Message))
	message, is := found.(protoreflect.MessageDescriptor)
	if err != nil || !is {
		return nil, nil, fmt.Errorf("%w: %s is not in the descriptor set", ErrNoMessage, s.Message)
	}
	return message.ParentFile(), []protoreflect.MessageDescriptor{message}, nil
}

// protocFlags make a whole descriptor set.
const protocFlags = "--include_imports --descriptor_set_out=FILE"

// withRemedy tells the way out of an edition that the compiler of texts does not know yet.
func withRemedy(err error) error {
	if !strings.Contains(err.Error(), "edition") {
		return err
	}
	return fmt.Errorf("%w: kdedup reads texts up to edition 2023; have protoc %s make a descriptor "+
		"set of this schema, and name it with the schema's ID in schema_registry.schemas (7=FILE)",
		err, protocFlags)
}

// ordinalsOf are the indexes of all messages in the order of their full names: that is how Glue's
// serializers number them.
func ordinalsOf(messages []protoreflect.MessageDescriptor) [][]int {
	type numbered struct {
		name    protoreflect.FullName
		indexes []int
	}
	var all []numbered
	var add func([]protoreflect.MessageDescriptor, []int)
	add = func(types []protoreflect.MessageDescriptor, within []int) {
		for i, m := range types {
			at := append(slices.Clone(within), i)
			all = append(all, numbered{m.FullName(), at})
			add(listed(m.Messages()), at)
		}
	}
	add(messages, nil)
	slices.SortFunc(all, func(a, b numbered) int { return cmp.Compare(a.name, b.name) })
	ordinals := make([][]int, len(all))
	for i := range all {
		ordinals[i] = all[i].indexes
	}
	return ordinals
}

// Ordinals are the indexes of all messages, as Glue's serializers number them.
func (s *Schema) Ordinals() [][]int {
	if s == nil {
		return nil
	}
	return s.ordinals
}

// Ordinals are those of Schema.Ordinals.
func (d *Documents) Ordinals() [][]int {
	if d == nil {
		return nil
	}
	return ordinalsOf(d.messages)
}
