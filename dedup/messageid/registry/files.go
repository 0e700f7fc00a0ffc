package registry

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/twmb/avro"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/kdedup/kdedup/dedup/messageid"
)

// files are the schemas of schema_registry.schemas. Nobody modifies them once they are read.
type files struct {
	all         []messageid.Schema
	byName      map[string]messageid.Schema
	ambiguous   map[string]bool // names of several schemas
	fingerprint map[uint64]messageid.Schema
	number      map[uint64]messageid.Schema // in the place of a registry's
}

// readFiles reads Avro schemas and descriptor sets, each as FILE, or as ID=FILE for the descriptor
// set of a schema that the registry has under an ID.
func readFiles(entries []string) (*files, error) {
	f := emptyFiles()
	for i, entry := range entries {
		number, file := SchemaFile(entry)
		data, err := os.ReadFile(file)
		if err == nil {
			err = f.add(number, data)
		}
		if err != nil {
			return nil, fmt.Errorf("schema_registry.schemas[%d]: %s: %w", i, file, err)
		}
	}
	return f, nil
}

func emptyFiles() *files {
	return &files{byName: make(map[string]messageid.Schema), ambiguous: make(map[string]bool),
		fingerprint: make(map[uint64]messageid.Schema), number: make(map[uint64]messageid.Schema)}
}

// SchemaFile splits an entry of schema_registry.schemas; the number is empty if there is none.
func SchemaFile(entry string) (number, file string) {
	before, after, found := strings.Cut(entry, "=")
	if _, err := strconv.ParseUint(before, 10, 64); found && err == nil {
		return before, after
	}
	return "", entry
}

func (f *files) add(number string, data []byte) error {
	set, isSet := descriptorSet(data)
	if number != "" {
		if !isSet {
			return errors.New("what stands for a schema of the registry must be a descriptor set")
		}
		id, err := strconv.ParseUint(number, 10, 64)
		f.number[id] = messageid.Schema{Type: messageid.FromProtobuf, Set: data}
		return err
	}
	if isSet {
		return f.addSet(set, data)
	}
	return f.addAvro(string(data))
}

// descriptorSet is false for what is none, such as the text of an Avro schema.
func descriptorSet(data []byte) (*descriptorpb.FileDescriptorSet, bool) {
	set := new(descriptorpb.FileDescriptorSet)
	if proto.Unmarshal(data, set) != nil || len(set.File) == 0 ||
		len(set.ProtoReflect().GetUnknown()) > 0 {
		return nil, false
	}
	return set, true
}

func (f *files) addSet(set *descriptorpb.FileDescriptorSet, data []byte) error {
	linked, err := protodesc.NewFiles(set)
	if err != nil {
		return fmt.Errorf("a descriptor set needs all that its files import (protoc "+
			"--include_imports): %w", err)
	}
	linked.RangeFiles(func(file protoreflect.FileDescriptor) bool {
		if _, err := protoregistry.GlobalFiles.FindFileByPath(file.Path()); err != nil ||
			!strings.HasPrefix(file.Path(), "google/protobuf/") {
			f.addMessages(file.Messages(), data)
		}
		return true
	})
	return nil
}

func (f *files) addMessages(types protoreflect.MessageDescriptors, data []byte) {
	for i := range types.Len() {
		name := string(types.Get(i).FullName())
		f.name(name, messageid.Schema{Type: messageid.FromProtobuf, Set: data, Message: name})
		f.addMessages(types.Get(i).Messages(), data)
	}
}

func (f *files) addAvro(text string) error {
	parsed, err := avro.Parse(text, avro.WithLaxNames(nil))
	if err != nil {
		return fmt.Errorf("it is neither a descriptor set nor an Avro schema with all types that it "+
			"names: %w", err)
	}
	s := messageid.Schema{Type: messageid.FromAvro, Text: text}
	// a fingerprint is of the canonical form, so what has the same one is the same to a reader
	f.fingerprint[binary.BigEndian.Uint64(parsed.Fingerprint(avro.NewRabin()))] = s
	name := parsed.Root().Name
	if space := parsed.Root().Namespace; space != "" && name != "" {
		name = space + "." + name
	}
	f.name(name, s)
	return nil
}

func (f *files) name(name string, s messageid.Schema) {
	f.all = append(f.all, s)
	if _, known := f.byName[name]; known {
		f.ambiguous[name] = true
	}
	f.byName[name] = s
}

// SchemaNamed implements messageid.NamedRegistry. Of two schemas with one name it takes none: what
// is not named in the records cannot be told apart.
func (c *Client) SchemaNamed(_ context.Context, name string) (messageid.Schema, error) {
	s, known := c.files.byName[name]
	switch {
	case !known:
		return s, fmt.Errorf("%w: no file of schema_registry.schemas has %s",
			messageid.ErrUnknownSchema, name)
	case c.files.ambiguous[name]:
		return messageid.Schema{}, fmt.Errorf("%w: several files of schema_registry.schemas have "+
			"%s, and records that name no schema do not say which: leave one",
			messageid.ErrUnknownSchema, name)
	}
	return s, nil
}

// Files are all schemas of files.
func (c *Client) Files() []messageid.Schema { return c.files.all }
