package registry_test

import (
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/twmb/avro"
	"github.com/twmb/franz-go/pkg/kgo"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/dedup/messageid"
	"github.com/kdedup/kdedup/dedup/messageid/registry"
)

const (
	orderV1 = `{"type":"record","name":"Order","namespace":"shop","fields":[` +
		`{"name":"id","type":"string"}]}`
	orderV2 = `{"type":"record","name":"Order","namespace":"shop","fields":[` +
		`{"name":"note","type":"string"},{"name":"id","type":"string"}]}`
)

func write(t *testing.T, name string, data []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// edition2024 is a set as protoc 35 makes it of a file with edition = "2024": messages Other and
// Order, with the ID in field 7.
func edition2024(t *testing.T) []byte {
	t.Helper()
	field := func(name string, number int32) *descriptorpb.FieldDescriptorProto {
		return &descriptorpb.FieldDescriptorProto{Name: proto.String(name),
			Number: proto.Int32(number),
			Label:  descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL.Enum(),
			Type:   descriptorpb.FieldDescriptorProto_TYPE_STRING.Enum()}
	}
	set, err := proto.Marshal(&descriptorpb.FileDescriptorSet{
		File: []*descriptorpb.FileDescriptorProto{{
			Name: proto.String("pb/order.proto"), Package: proto.String("pb"),
			Syntax:  proto.String("editions"),
			Edition: descriptorpb.Edition_EDITION_2024.Enum(),
			MessageType: []*descriptorpb.DescriptorProto{
				{Name: proto.String("Other"),
					Field: []*descriptorpb.FieldDescriptorProto{field("id", 1)}},
				{Name: proto.String("Order"),
					Field: []*descriptorpb.FieldDescriptorProto{field("id", 7)}},
			},
		}}})
	if err != nil {
		t.Fatal(err)
	}
	return set
}

func idOf(t *testing.T, s messageid.Source, r *kgo.Record) (dedup.ID, dedup.MissingReason, string) {
	t.Helper()
	e, err := messageid.New(s)
	if err != nil {
		t.Fatal(err)
	}
	id, missing, err := dedup.ExtractNow(t.Context(), e, r)
	if err != nil {
		t.Fatal(err)
	}
	return id, missing, e.Notice()
}

func TestRecordsFindTheirSchemasInFiles(t *testing.T) {
	c := client(t, registry.Options{Type: registry.Files, Schemas: []string{
		write(t, "v1.avsc", []byte(orderV1)), write(t, "v2.avsc", []byte(orderV2)),
		write(t, "alone.avsc", []byte(strings.ReplaceAll(orderV2, "Order", "Alone"))),
		write(t, "shop.binpb", edition2024(t))}})
	avroID := messageid.Source{From: "avro", Path: "id"}
	protoID := messageid.Source{From: "protobuf", Path: "id"}
	single := func(schema, note string) string {
		s := avro.MustParse(schema)
		data, err := s.AppendSingleObject(nil, map[string]any{"note": note, "id": "a-1"})
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	unknown := "\xC3\x01" + string(binary.LittleEndian.AppendUint64(nil, 4711)) + "\x06a-1"
	for _, row := range []struct {
		name, schema string
		source       messageid.Source
		value        string
		want         dedup.ID
		missing      dedup.MissingReason
		told         string
	}{
		{"a fingerprint", "", avroID, single(orderV1, ""), "a-1", 0, ""},
		{"that of another version", "", avroID, single(orderV2, "x"), "a-1", 0, ""},
		{"one that no file has", "", avroID, unknown, "", dedup.MissingUnknownSchema,
			"no file of schema_registry.schemas"},
		{"a number of a registry", "", avroID, "\x00\x00\x00\x00\x01\x06a-1", "",
			dedup.MissingUnknownSchema, "type is files"},
		{"nothing, and nothing is configured", "", avroID, "\x06a-1", "", dedup.MissingUnframed,
			""},
		{"nothing, and the entry says it", "shop.Alone", avroID, "\x02x\x06a-1", "a-1", 0, ""},
		{"nothing, and two versions", "shop.Order", avroID, "\x06a-1", "",
			dedup.MissingUnknownSchema, "several files"},
		{"a message", "pb.Order", protoID, "\x3a\x03a-1", "a-1", 0, ""},
		{"another message of the file", "pb.Other", protoID, "\x0a\x03a-1", "a-1", 0, ""},
		{"a message that is nowhere", "pb.None", protoID, "\x0a\x03a-1", "",
			dedup.MissingUnknownSchema, "has pb.None"},
		{"avro, and the name is a message's", "pb.Other", avroID, "\x06a-1", "",
			dedup.MissingUnusableSchema, "of type protobuf"},
	} {
		row.source.Registry = messageid.OfValues(c, row.schema)
		id, missing, told := idOf(t, row.source, &kgo.Record{Value: []byte(row.value)})
		if id != row.want || missing != row.missing || !strings.Contains(told, row.told) {
			t.Errorf("%s: %q, %v, %q", row.name, id, missing, told)
		}
	}
}

// What the compiler of texts does not know yet, a descriptor set brings; without one the reason
// names it.
func TestADescriptorSetStandsForATextThatCannotBeRead(t *testing.T) {
	const answer = `{"schemaType":"PROTOBUF","schema":"edition = \"2024\"; package shop; ` +
		`message Other { string id = 1; } message Order { string id = 7; }"}`
	server := serve(t, map[string]string{"/schemas/ids/7": answer, "/schemas/ids/8": answer})
	c := client(t, registry.Options{URLs: []string{server.URL},
		Schemas: []string{"7=" + write(t, "shop.binpb", edition2024(t))}})
	s := messageid.Source{From: "protobuf", Path: "id", Registry: c}
	id, missing, _ := idOf(t, s,
		&kgo.Record{Value: []byte("\x00\x00\x00\x00\x07\x02\x02\x3a\x03a-1")})
	if id != "a-1" || missing != 0 {
		t.Errorf("with the set: %q, %v", id, missing)
	}
	_, missing, told := idOf(t, s,
		&kgo.Record{Value: []byte("\x00\x00\x00\x00\x08\x02\x02\x3a\x03a-1")})
	if missing != dedup.MissingUnusableSchema ||
		!strings.Contains(told, "schema_registry.schemas") ||
		!strings.Contains(told, "--descriptor_set_out") {
		t.Errorf("without: %v, %q", missing, told)
	}
}

func TestAFileThatIsNoSchemaIsRefused(t *testing.T) {
	half, err := proto.Marshal(&descriptorpb.FileDescriptorSet{
		File: []*descriptorpb.FileDescriptorProto{{Name: proto.String("a.proto"),
			Dependency: []string{"gone.proto"}}}})
	if err != nil {
		t.Fatal(err)
	}
	for want, entry := range map[string]string{
		"neither a descriptor set nor an Avro schema": write(t, "a", []byte("{")),
		"no such file":          "/nowhere/a.avsc",
		"--include_imports":     write(t, "b", half),
		"must be a descriptor":  "7=" + write(t, "c", []byte(orderV1)),
		"nor an Avro schema wi": write(t, "d", []byte(`{"type":"array","items":"shop.Price"}`)),
	} {
		_, err := registry.New(registry.Options{Type: registry.Files, Schemas: []string{entry}})
		if err == nil || !strings.Contains(err.Error(), want) ||
			!strings.Contains(err.Error(), "schema_registry.schemas[0]") {
			t.Errorf("%s: %v", entry, err)
		}
	}
	c := client(t, registry.Options{Type: registry.Files})
	if _, err := c.Schema(t.Context(), 1); !errors.Is(err, messageid.ErrUnknownSchema) {
		t.Error(err)
	}
}
