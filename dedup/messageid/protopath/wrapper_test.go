package protopath_test

import (
	"context"
	"encoding/base64"
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/bufbuild/protocompile"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/dedup/messageid/protopath"
)

const wrapped = `syntax = "proto3";
import "google/protobuf/wrappers.proto";
import "google/protobuf/timestamp.proto";
message Order {
  google.protobuf.StringValue id = 1;
  google.protobuf.Int64Value number = 2;
  google.protobuf.BoolValue paid = 3;
  repeated google.protobuf.StringValue tags = 4;
  map<string, google.protobuf.Int64Value> counts = 5;
  oneof which { google.protobuf.StringValue left = 6; string right = 7; }
  google.protobuf.DoubleValue price = 8;
  google.protobuf.Timestamp at = 9;
}
`

func wrappedPlan(t testing.TB, path string) *protopath.Plan {
	t.Helper()
	s, err := protopath.Compile(protopath.Source{Text: wrapped}, parse(t, path))
	if err != nil {
		t.Fatal(err)
	}
	p, err := s.Plan([]int{0})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func wrappedMessage(t testing.TB) protoreflect.MessageDescriptor {
	t.Helper()
	c := protocompile.Compiler{Resolver: protocompile.WithStandardImports(
		&protocompile.SourceResolver{Accessor: protocompile.SourceAccessorFromMap(
			map[string]string{"order.proto": wrapped})})}
	files, err := c.Compile(context.Background(), "order.proto")
	if err != nil {
		t.Fatal(err)
	}
	return files[0].Messages().Get(0)
}

func TestAWrapperHasTheTextOfItsValue(t *testing.T) {
	is := wrappedMessage(t)
	for _, c := range []struct {
		path, one, two, want string
		missing              dedup.MissingReason
	}{
		{"id", `{"id":"a-1"}`, `{}`, "a-1", dedup.NotMissing},
		{"id.value", `{"id":"a-1"}`, `{}`, "a-1", dedup.NotMissing},
		{"id", `{}`, `{}`, "", dedup.MissingAbsent},
		{"id", `{"id":""}`, `{}`, "", dedup.MissingEmpty},
		{"id", `{"id":"a"}`, `{"id":""}`, "a", dedup.NotMissing}, // they are one message
		{"id", `{"id":""}`, `{"id":"b"}`, "b", dedup.NotMissing},
		{"number", `{"number":"0"}`, `{}`, "0", dedup.NotMissing},
		{"number", `{"number":"-7"}`, `{}`, "-7", dedup.NotMissing},
		{"number", `{"id":"a"}`, `{}`, "", dedup.MissingAbsent},
		{"price", `{"price":0}`, `{}`, "0", dedup.NotMissing},
		{"price", `{"price":1.5}`, `{}`, "1.5", dedup.NotMissing},
		{"tags[1]", `{"tags":["a",""]}`, `{}`, "", dedup.MissingEmpty},
		{"tags[1]", `{"tags":["a"]}`, `{"tags":["b"]}`, "b", dedup.NotMissing},
		{"tags[2]", `{"tags":["a","b"]}`, `{}`, "", dedup.MissingAbsent},
		{"counts.x", `{"counts":{"x":"0"}}`, `{}`, "0", dedup.NotMissing},
		{"counts.x", `{"counts":{"x":"5"}}`, `{"counts":{"x":"0"}}`, "0", dedup.NotMissing},
		{"counts.y", `{"counts":{"x":"0"}}`, `{}`, "", dedup.MissingAbsent},
		{"left", `{"left":"a"}`, `{"right":"b"}`, "", dedup.MissingAbsent},
		{"left", `{"right":"b"}`, `{"left":"a"}`, "a", dedup.NotMissing},
	} {
		var data []byte
		for _, text := range []string{c.one, c.two} {
			m := dynamicpb.NewMessage(is)
			if err := protojson.Unmarshal([]byte(text), m); err != nil {
				t.Fatal(err)
			}
			more, err := proto.Marshal(m)
			if err != nil {
				t.Fatal(err)
			}
			data = append(data, more...)
		}
		got, missing := wrappedPlan(t, c.path).Find(data)
		if string(got) != c.want || missing != c.missing {
			t.Errorf("%s of %s and %s: %q, %v, want %q, %v", c.path, c.one, c.two, got, missing,
				c.want, c.missing)
		}
	}
	// a writer may leave out the value of an entry of a map
	entry := []byte("\x2a\x03\x0a\x01x")
	if got, missing := wrappedPlan(t, "counts.x").Find(entry); string(got) != "0" {
		t.Errorf("an entry without a value: %q, %v", got, missing)
	}
}

// All of a message is the ID, of each wrapper that Google has.
func TestAWholeMessageMayBeAWrapper(t *testing.T) {
	file := protodesc.ToFileDescriptorProto(wrapperspb.File_google_protobuf_wrappers_proto)
	text, err := proto.Marshal(file)
	if err != nil {
		t.Fatal(err)
	}
	compiled := base64.StdEncoding.EncodeToString(text)
	s, err := protopath.Compile(protopath.Source{Text: compiled}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		message proto.Message
		want    string
		missing dedup.MissingReason
	}{
		{wrapperspb.String("a-1"), "a-1", dedup.NotMissing},
		{wrapperspb.String(""), "", dedup.MissingEmpty},
		{wrapperspb.Bytes([]byte{0, 255}), "\x00\xff", dedup.NotMissing},
		{wrapperspb.Int64(-7), "-7", dedup.NotMissing},
		{wrapperspb.Int64(0), "0", dedup.NotMissing},
		{wrapperspb.UInt64(1<<64 - 1), "18446744073709551615", dedup.NotMissing},
		{wrapperspb.Int32(-1), "-1", dedup.NotMissing},
		{wrapperspb.UInt32(1<<32 - 1), "4294967295", dedup.NotMissing},
		{wrapperspb.Double(0.1), "0.1", dedup.NotMissing},
		{wrapperspb.Float(0.1), "0.1", dedup.NotMissing},
	} {
		data, err := proto.Marshal(c.message)
		if err != nil {
			t.Fatal(err)
		}
		p, err := s.Plan([]int{c.message.ProtoReflect().Descriptor().Index()})
		if err != nil {
			t.Fatal(err)
		}
		if got, missing := p.Find(data); string(got) != c.want || missing != c.missing {
			t.Errorf("%T %v: %q, %v, want %q, %v", c.message, c.message, got, missing, c.want,
				c.missing)
		}
	}
	boolean := wrapperspb.Bool(true).ProtoReflect().Descriptor().Index()
	if _, err := s.Plan([]int{boolean}); !errors.Is(err, protopath.ErrNoID) {
		t.Errorf("a boolean: %v", err)
	}
}

func TestAMessageThatIsNoWrapperIsNoID(t *testing.T) {
	for _, path := range []string{"paid", "at"} {
		s, err := protopath.Compile(protopath.Source{Text: wrapped}, parse(t, path))
		if err == nil {
			_, err = s.Plan([]int{0})
		}
		if !errors.Is(err, protopath.ErrNoID) {
			t.Errorf("%s: %v", path, err)
		}
	}
	s, err := protopath.Compile(protopath.Source{Text: wrapped}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Plan([]int{0}); !errors.Is(err, protopath.ErrNoID) {
		t.Errorf("all of an order: %v", err)
	}
}

// Random bytes of an order: what dynamicpb reads is what the plan finds.
func TestRandomWrappersReadAsTheLibraryReadsThem(t *testing.T) {
	is, random := wrappedMessage(t), rand.New(rand.NewPCG(46, 9))
	p, read := wrappedPlan(t, "number"), 0
	for range 200_000 {
		data := make([]byte, random.IntN(8))
		for i := range data {
			data[i] = "\x12\x00\x02\x08\x01\x0a\x03\x80\x04\x12"[random.IntN(10)]
		}
		m := dynamicpb.NewMessage(is)
		if !unmarshal(data, m) {
			continue
		}
		field, want := is.Fields().ByName("number"), ""
		if m.Has(field) {
			value := m.Get(field).Message()
			want = value.Get(value.Descriptor().Fields().ByName("value")).String()
			read++
		}
		if got, _ := p.Find(data); string(got) != want {
			t.Fatalf("%x: %q, want %q", data, got, want)
		}
	}
	if read < 500 {
		t.Errorf("%d orders had a number", read)
	}
}
