package protopath_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/bufbuild/protocompile"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/dedup/messageid/protopath"
	"github.com/kdedup/kdedup/internal/jsonpath"
)

const order = `syntax = "proto3";
package shop;
import "google/protobuf/timestamp.proto";
enum State { NEW = 0; PAID = 1; }
message Order {
  message Ref { string id = 1; Ref next = 2; repeated sint64 nums = 3; }
  string note = 1;
  bytes blob = 2;
  State state = 3;
  repeated string tags = 4;
  repeated int32 packed = 5;
  map<string, Ref> by_name = 6;
  map<sint32, int64> by_number = 7;
  optional int64 given = 8;
  uint64 plain = 9;
  double price = 10;
  float weight = 11;
  fixed64 f64 = 12;
  sfixed32 s32 = 13;
  sint32 z32 = 14;
  bool paid = 15;
  oneof which { string left = 16; Ref right = 17; }
  repeated Ref refs = 18;
  google.protobuf.Timestamp at = 19;
  string order_id = 20;
}
message Other { string id = 1; message In { int32 id = 7; } }
`

func parse(t testing.TB, path string) jsonpath.Path {
	t.Helper()
	paths, err := jsonpath.Parse(path)
	if err != nil {
		t.Fatal(err)
	}
	return paths[0]
}

func plan(t testing.TB, path string, indexes ...int) *protopath.Plan {
	t.Helper()
	s, err := protopath.Compile(protopath.Source{Text: order}, parse(t, path))
	if err != nil {
		t.Fatal(err)
	}
	p, err := s.Plan(append([]int{0}, indexes...))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// message is the type as another implementation reads it.
func message(t testing.TB) protoreflect.MessageDescriptor {
	t.Helper()
	c := protocompile.Compiler{Resolver: protocompile.WithStandardImports(
		&protocompile.SourceResolver{Accessor: protocompile.SourceAccessorFromMap(
			map[string]string{"order.proto": order})})}
	files, err := c.Compile(context.Background(), "order.proto")
	if err != nil {
		t.Fatal(err)
	}
	return files[0].Messages().ByName("Order")
}

func encode(t testing.TB, text string) []byte {
	t.Helper()
	m := dynamicpb.NewMessage(message(t))
	if err := protojson.Unmarshal([]byte(text), m); err != nil {
		t.Fatal(err)
	}
	data, err := proto.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

const sample = `{"note":"n","blob":"AAH/","state":"PAID","tags":["a","b",""],"packed":[1,-2,3],
 "byName":{"x":{"id":"in x","nums":["-1","5"]},"":{"id":"empty"}},"byNumber":{"-3":"9","0":"0"},
 "given":"0","plain":"18446744073709551615","price":1e21,"weight":0.1,"f64":"7","s32":-8,"z32":-9,
 "paid":true,"right":{"id":"r","next":{"id":"rr"}},"refs":[{},{"id":"second"}],
 "at":"2026-11-26T00:00:00Z","orderId":"o-1"}`

func TestEveryTypeHasOneText(t *testing.T) {
	data := encode(t, sample)
	for path, want := range map[string]string{
		"note": "n", "blob": "\x00\x01\xff", "state": "PAID", "tags[1]": "b", "packed[1]": "-2",
		"by_name.x.id": "in x", "byName.x.nums[1]": "5", "by_number.-3": "9", "by_number.0": "0",
		"given": "0", "plain": "18446744073709551615", "price": "1000000000000000000000",
		"weight": "0.1", "f64": "7", "s32": "-8", "z32": "-9", "right.next.id": "rr",
		"refs[1].id": "second", "at.seconds": "1795651200", "order_id": "o-1", "orderId": "o-1",
	} {
		got, missing := plan(t, path).Find(data)
		if string(got) != want || missing != dedup.NotMissing {
			t.Errorf("%s: %q, %v, want %q", path, got, missing, want)
		}
	}
	for path, want := range map[string]dedup.MissingReason{
		"tags[2]": dedup.MissingEmpty, "tags[3]": dedup.MissingAbsent,
		"left": dedup.MissingAbsent, "refs[0].id": dedup.MissingAbsent,
		"by_name.y.id": dedup.MissingAbsent, "right.next.next.id": dedup.MissingAbsent,
		"at.nanos": dedup.MissingAbsent,
	} {
		if got, missing := plan(t, path).Find(data); missing != want {
			t.Errorf("%s: %q, %v, want %v", path, got, missing, want)
		}
	}
}

// A writer may leave a default value out or not: both are one record.
func TestADefaultValueIsNoID(t *testing.T) {
	written := protowire.AppendVarint(protowire.AppendTag(nil, 9, protowire.VarintType), 0)
	empty := protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), nil)
	for _, c := range []struct {
		path string
		data []byte
	}{{"plain", nil}, {"plain", written}, {"note", nil}, {"note", empty}, {"state", nil},
		{"given", nil}} {
		if got, missing := plan(t, c.path).Find(c.data); missing != dedup.MissingAbsent {
			t.Errorf("%s of %x: %q, %v", c.path, c.data, got, missing)
		}
	}
}

func TestTheLastOfEqualFieldsCounts(t *testing.T) {
	for _, c := range []struct{ path, one, two, want string }{
		{"note", `{"note":"a"}`, `{"note":"b"}`, "b"},
		{"right.id", `{"right":{"id":"a"}}`, `{"right":{"next":{"id":"b"}}}`, "a"},
		{"right.id", `{"right":{"id":"a"}}`, `{"left":"b"}`, ""},
		{"right.id", `{"right":{"id":"a"},"note":"n"}`, `{"left":"b"}`, ""},
		{"left", `{"right":{"id":"a"}}`, `{"left":"b"}`, "b"},
		{"tags[2]", `{"tags":["a","b"]}`, `{"tags":["c"]}`, "c"},
		{"right.nums[1]", `{"right":{"nums":["1"]}}`, `{"right":{"nums":["2"]}}`, "2"},
		{"by_name.x.id", `{"byName":{"x":{"id":"a"}}}`, `{"byName":{"x":{}}}`, ""},
	} {
		both := append(encode(t, c.one), encode(t, c.two)...)
		if got, missing := plan(t, c.path).Find(both); string(got) != c.want {
			t.Errorf("%s of %s and %s: %q, %v, want %q", c.path, c.one, c.two, got, missing,
				c.want)
		}
	}
}

func TestARecordNamesItsMessage(t *testing.T) {
	s, err := protopath.Compile(protopath.Source{Text: order}, parse(t, "id"))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		indexes []int
		is      error
	}{{[]int{0, 0}, nil}, {[]int{1}, nil}, {[]int{1, 0}, nil}, {[]int{0}, protopath.ErrNoField},
		{[]int{2}, protopath.ErrNoMessage}, {[]int{-1}, protopath.ErrNoMessage},
		{[]int{1, 0, 0}, protopath.ErrNoMessage}, {nil, protopath.ErrNoMessage}} {
		if _, err := s.Plan(c.indexes); !errors.Is(err, c.is) {
			t.Errorf("%v: %v", c.indexes, err)
		}
	}
	if err := s.Any(); err != nil {
		t.Error(err)
	}
}

func TestAPathThatTheSchemaCannotHaveIsRefused(t *testing.T) {
	for path, is := range map[string]error{
		"nope": protopath.ErrNoField, "note.x": protopath.ErrNoField,
		"tags": protopath.ErrNoID, "tags.x": protopath.ErrNoField, "by_name": protopath.ErrNoID,
		"by_name.x": protopath.ErrNoID, "paid": protopath.ErrNoID, "right": protopath.ErrNoID,
		strings.Repeat("right.", 40) + "id": protopath.ErrNoField,
	} {
		s, err := protopath.Compile(protopath.Source{Text: order}, parse(t, path))
		if err == nil {
			_, err = s.Plan([]int{0})
		}
		if !errors.Is(err, is) {
			t.Errorf("%s: %v, want %v", path, err, is)
		}
	}
	for _, schema := range []string{"message", `syntax="proto3"; import "gone.proto";`} {
		if _, err := protopath.Compile(protopath.Source{Text: schema}, parse(t, "a")); err == nil {
			t.Errorf("%s is accepted", schema)
		}
	}
}

func TestReferencesHaveTheNamesOfImports(t *testing.T) {
	s, err := protopath.Compile(protopath.Source{
		Text: `syntax="proto3"; import "x/c.proto"; message O { x.C c = 1; }`,
		References: map[string]string{
			"x/c.proto": `syntax="proto3"; package x; message C { string id = 1; }`}},
		parse(t, "c.id"))
	if err != nil {
		t.Fatal(err)
	}
	p, err := s.Plan([]int{0})
	if err != nil {
		t.Fatal(err)
	}
	if got, missing := p.Find([]byte("\x0a\x03\x0a\x01a")); string(got) != "a" {
		t.Errorf("%q, %v", got, missing)
	}
}

func TestWhatIsNoMessageHasNoID(t *testing.T) {
	p := plan(t, "note")
	for _, data := range []string{"\x0a\x05abc", "\x0a", "\x00", "\x0f",
		string(bytes.Repeat([]byte{0x0b}, 1<<20))} {
		if got, missing := p.Find([]byte(data)); missing != dedup.MissingUnparsable {
			t.Errorf("%.20q: %q, %v", data, got, missing)
		}
	}
}

// FuzzFind compares with dynamicpb.
func FuzzFind(f *testing.F) {
	f.Add(encode(f, sample))
	f.Add([]byte{})
	f.Add(append(encode(f, `{"left":"a"}`), encode(f, `{"right":{"id":"b"}}`)...))
	m := message(f)
	note, nested := plan(f, "order_id"), plan(f, "right.next.id")
	number, packed := plan(f, "z32"), plan(f, "packed[1]")
	f.Fuzz(func(t *testing.T, data []byte) {
		one, _ := note.Find(data)
		two, _ := nested.Find(data)
		three, _ := number.Find(data)
		four, _ := packed.Find(data)
		value := dynamicpb.NewMessage(m)
		if !unmarshal(data, value) {
			return
		}
		get := func(m protoreflect.Message, name string) protoreflect.Value {
			return m.Get(m.Descriptor().Fields().ByName(protoreflect.Name(name)))
		}
		if want := get(value, "order_id").String(); string(one) != want {
			t.Fatalf("order_id: %q, want %q", one, want)
		}
		next := get(get(value, "right").Message(), "next").Message()
		if want := get(next, "id").String(); string(two) != want {
			t.Fatalf("right.next.id: %q, want %q", two, want)
		}
		want := ""
		if n := get(value, "z32"); n.Int() != 0 {
			want = n.String()
		}
		if string(three) != want {
			t.Fatalf("z32: %q, want %q", three, want)
		}
		want = ""
		if list := get(value, "packed").List(); list.Len() > 1 {
			want = list.Get(1).String()
		}
		if string(four) != want {
			t.Fatalf("packed[1]: %q, want %q", four, want)
		}
	})
}

// unmarshal is false for what the library refuses, or panics at: an entry of a map whose key has
// another type.
func unmarshal(data []byte, into proto.Message) (read bool) {
	defer func() {
		if recover() != nil {
			read = false
		}
	}()
	return proto.Unmarshal(data, into) == nil
}

// BenchmarkFind takes an ID out of a message of 1 KiB, behind most of it.
func BenchmarkFind(b *testing.B) {
	data := encode(b, `{"note":"`+strings.Repeat("n", 800)+`",`+sample[len(`{"note":"n",`):])
	p := plan(b, "order_id")
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		if _, missing := p.Find(data); missing != dedup.NotMissing {
			b.Fatal(missing)
		}
	}
}
