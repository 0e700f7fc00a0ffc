package registry

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"os"
	"runtime"
	"testing"

	"github.com/twmb/avro"
	"github.com/twmb/franz-go/pkg/kgo"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/dedup/messageid"
)

// mostForOne bounds what the memory of one schema and one record may come to, whatever they say.
const mostForOne = 256 << 20

// bounded runs a look at fuzzed bytes, and fails if it took memory out of all proportion.
func bounded(t *testing.T, look func()) {
	t.Helper()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	look()
	runtime.ReadMemStats(&after)
	if took := after.TotalAlloc - before.TotalAlloc; took > mostForOne {
		t.Fatalf("it took %d MiB", took>>20)
	}
}

// serialized are the schemas and records that serializers made for the tests of messageid.
func serialized(f *testing.F, visit func(schema string, record []byte)) {
	f.Helper()
	data, err := os.ReadFile("../testdata/serializers.json")
	if err != nil {
		f.Fatal(err)
	}
	var fixtures struct {
		Records []struct{ Schema, Record string }
	}
	if err := json.Unmarshal(data, &fixtures); err != nil {
		f.Fatal(err)
	}
	for _, r := range fixtures.Records {
		record, err := hex.DecodeString(r.Record)
		if err != nil {
			f.Fatal(err)
		}
		visit(r.Schema, record[5:])
	}
}

const (
	fuzzedOrder = `{"type":"record","name":"Order","namespace":"shop","fields":[` +
		`{"name":"note","type":"string"},{"name":"id","type":["null","string"]}]}`
	fuzzedTree = `{"type":"record","name":"T","fields":[{"name":"l","type":{"type":"array",` +
		`"items":"T"}},{"name":"m","type":{"type":"map","values":["null","T"]}},` +
		`{"name":"id","type":{"type":"bytes","logicalType":"decimal","precision":9,"scale":2}}]}`
)

// descriptors are a set as protoc makes it.
func descriptors(f *testing.F) []byte {
	f.Helper()
	field := &descriptorpb.FieldDescriptorProto{Name: proto.String("id"), Number: proto.Int32(1),
		Label: descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL.Enum(),
		Type:  descriptorpb.FieldDescriptorProto_TYPE_STRING.Enum()}
	order := &descriptorpb.DescriptorProto{Name: proto.String("Order"),
		Field: []*descriptorpb.FieldDescriptorProto{field}}
	set := &descriptorpb.FileDescriptorSet{File: []*descriptorpb.FileDescriptorProto{{
		Name: proto.String("shop/order.proto"), Package: proto.String("shop"),
		Syntax:      proto.String("proto3"),
		MessageType: []*descriptorpb.DescriptorProto{order}}}}
	data, err := proto.Marshal(set)
	if err != nil {
		f.Fatal(err)
	}
	return data
}

// FuzzSchemasOfFiles: whatever a file of a schema holds, it is refused or it is a schema, and then
// whatever a record holds, it has an ID by it or a reason.
func FuzzSchemasOfFiles(f *testing.F) {
	f.Add([]byte(fuzzedOrder), []byte("\x02n\x02\x06a-1"), "id")
	f.Add([]byte(fuzzedTree), []byte("\x00\x00\x04\x04\xd2"), "l[0].m.x.id")
	f.Add([]byte(`"string"`), []byte("\x06a-1"), "$")
	f.Add(descriptors(f), []byte("\x0a\x03a-1"), "id")
	serialized(f, func(schema string, record []byte) {
		f.Add([]byte(schema), record, "items[0].id")
	})
	f.Fuzz(func(t *testing.T, file, record []byte, path string) {
		bounded(t, func() {
			all := emptyFiles()
			if all.add("", file) != nil {
				return
			}
			of := &Client{files: all}
			for name, schema := range all.byName {
				source := messageid.Source{From: schema.Type, Path: path,
					Registry: messageid.OfValues(of, name)}
				sees(t, source, record)
				source = messageid.Source{From: "value_hash", Format: schema.Type,
					Ignore: []string{"a.b"}, Registry: messageid.OfValues(of, name)}
				sees(t, source, record)
				_ = messageid.CheckField(messageid.Source{From: schema.Type, Path: path}, schema)
			}
		})
	})
}

// sees wants an ID or a reason, and the same one again.
func sees(t *testing.T, source messageid.Source, record []byte) {
	t.Helper()
	e, err := messageid.New(source)
	if err != nil {
		return // such a path is refused
	}
	before := bytes.Clone(record)
	r := &kgo.Record{Value: record}
	id, missing, err := dedup.ExtractNow(t.Context(), e, r)
	again, reason := e.Extract(r)
	if err != nil || missing == dedup.MissingUnresolved || id != again || missing != reason ||
		(id == "") != (missing != dedup.NotMissing) {
		t.Fatalf("%s: %q, %v, %v; then %q, %v", e, id, missing, err, again, reason)
	}
	if !bytes.Equal(before, record) {
		t.Fatalf("%s changed the record", e)
	}
}

// FuzzSingleObject: what begins as Avro's single-object encoding does names a schema of a file, or
// has a reason.
func FuzzSingleObject(f *testing.F) {
	all := emptyFiles()
	for schema, value := range map[string]any{
		fuzzedOrder: map[string]any{"note": "n", "id": "a-1"},
		fuzzedTree:  map[string]any{"l": []any{}, "m": map[string]any{}, "id": []byte{4, 210}},
		`"string"`:  "a-1",
	} {
		if err := all.add("", []byte(schema)); err != nil {
			f.Fatal(err)
		}
		record, err := avro.MustParse(schema).AppendSingleObject(nil, value)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(record)
		f.Add(record[:10])
	}
	of := &Client{files: all, kind: Files}
	f.Fuzz(func(t *testing.T, value []byte) {
		bounded(t, func() {
			for _, path := range []string{"id", "l[0].m.x.id", "$"} {
				sees(t, messageid.Source{From: "avro", Path: path, Registry: of}, value)
			}
			sees(t, messageid.Source{From: "value_hash", Format: "avro", Ignore: []string{"note"},
				Registry: of}, value)
		})
	})
}
