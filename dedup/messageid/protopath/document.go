package protopath

import (
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/dynamicpb"
)

// Documents writes messages of a file as JSON documents. It is safe for concurrent use.
type Documents struct {
	messages []protoreflect.MessageDescriptor
	types    *dynamicpb.Types // of what lies in an Any
}

// CompileDocuments is Compile for who needs all of a message.
func CompileDocuments(s Source) (*Documents, error) {
	file, messages, err := s.parse()
	if err != nil {
		return nil, err
	}
	var files protoregistry.Files
	if err := files.RegisterFile(file); err != nil {
		return nil, err
	}
	return &Documents{messages, dynamicpb.NewTypes(&files)}, nil
}

// maxDocument is the length of a message up to which it becomes a document: decoded it takes up to
// a hundred times its bytes.
const maxDocument = 1 << 20

// maxDepth bounds how deep messages nest, as other readers do.
const maxDepth = 100

// AppendJSON appends the document of the message to which the indexes lead, as protobuf's JSON
// mapping has it, by the names that fields have in the schema. Fields that are not set, and those
// without presence that have their default value, are left out. It is false for what is no such
// message, for fields that the schema does not have, and for messages above 1 MiB.
func (d *Documents) AppendJSON(to []byte, indexes []int, message []byte) ([]byte, bool) {
	is := d.message(indexes)
	if is == nil || len(message) > maxDocument {
		return to, false
	}
	m := dynamicpb.NewMessage(is)
	read := proto.UnmarshalOptions{AllowPartial: true, RecursionLimit: maxDepth,
		Resolver: d.types}
	if read.Unmarshal(message, m) != nil || !known(m) {
		return to, false
	}
	write := protojson.MarshalOptions{AllowPartial: true, UseProtoNames: true, Resolver: d.types}
	doc, err := write.MarshalAppend(to, m)
	return doc, err == nil
}

func (d *Documents) message(indexes []int) protoreflect.MessageDescriptor {
	if len(indexes) == 0 || indexes[0] < 0 || indexes[0] >= len(d.messages) {
		return nil
	}
	is := d.messages[indexes[0]]
	for _, index := range indexes[1:] {
		if index < 0 || index >= is.Messages().Len() {
			return nil
		}
		is = is.Messages().Get(index)
	}
	return is
}

// known reports whether the schema has all that is in the message: the document has only that.
func known(m protoreflect.Message) bool {
	if len(m.GetUnknown()) > 0 {
		return false
	}
	all := true
	m.Range(func(field protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		switch {
		case inner(field) == nil:
		case field.IsMap():
			value.Map().Range(func(_ protoreflect.MapKey, value protoreflect.Value) bool {
				all = known(value.Message())
				return all
			})
		case field.IsList():
			for i := 0; all && i < value.List().Len(); i++ {
				all = known(value.List().Get(i).Message())
			}
		default:
			all = known(value.Message())
		}
		return all
	})
	return all
}
