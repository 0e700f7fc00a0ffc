package api

import (
	"bytes"
	"math"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/timestamppb"

	kdedupv1 "github.com/kdedup/kdedup/api/kdedup/v1"
)

// inOrder writes a message with its fields in a fixed order.
func inOrder(t testing.TB, m proto.Message) []byte {
	t.Helper()
	data, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// requests are some whose form differs, well-formed ones and others.
func requests(t testing.TB) (all [][]byte) {
	epoch := int32(-1)
	record := func(r *kdedupv1.Record) *kdedupv1.Place {
		return &kdedupv1.Place{Place: &kdedupv1.Place_Record{Record: r}}
	}
	whole := of(
		&kdedupv1.Message{Id: "a", Place: at(1), Fingerprint: make([]byte, 16)},
		&kdedupv1.Message{Id: "\u00e9", Place: record(&kdedupv1.Record{TopicId: make([]byte, 16),
			Partition: -1, Offset: math.MinInt64, LeaderEpoch: &epoch})},
		&kdedupv1.Message{IdBytes: []byte{0xff}, Place: text("ticket")},
		&kdedupv1.Message{Id: "b", Place: record(&kdedupv1.Record{}),
			SettledUntil: &timestamppb.Timestamp{Seconds: 7}},
		&kdedupv1.Message{Place: &kdedupv1.Place{}}, &kdedupv1.Message{})
	data := inOrder(t, whole)
	nested := func(numbers ...protowire.Number) func(...byte) []byte {
		return func(inner ...byte) []byte {
			for _, n := range numbers {
				tag := protowire.AppendTag(nil, n, protowire.BytesType)
				inner = protowire.AppendBytes(tag, inner)
			}
			return inner
		}
	}
	message, place, inRecord := nested(2), nested(3, 2), nested(1, 3, 2)
	all = append(all, data, data[:len(data)-1], nil, bytes.Repeat(data, 3),
		[]byte("\x0a\x01\xff"),                  // a scope that is no text
		[]byte("\x0a\x01a\x0a\x01b"),            // two scopes: the last one counts
		[]byte("\x1a\x01a"), []byte("\x08\x01"), // unknown fields
		message('\x0a', 1, 0xff),                // an ID that is no text
		message('\x0a', 1, 'a', '\x0a', 1, 'b'), // two IDs
		message('\x0a', 9), message('\x08', 1), message('\x32', 0), message('\x0d', 0, 0, 0, 0),
		message('\x12', 0, '\x22', 0), // bytes that are empty
		// two places, and two records of one place, are merged
		message('\x1a', 4, '\x0a', 2, '\x18', 1,
			'\x1a', 4, '\x0a', 2, '\x20', 2),
		place('\x0a', 2, '\x18', 1, '\x0a', 2, '\x20', 2),
		place('\x0a', 2, '\x18', 1, '\x12', 1, 'a'), // a record, and then a text
		place('\x0b', '\x0c'),                       // a group, as old programs have them
		inRecord('\x0a', 1, 0xff), inRecord('\x1a', 0), inRecord('\x08', 1), inRecord('\x30', 1),
		inRecord('\x18', 0xff, 0xff, 0xff, 0xff, 0x7f), inRecord('\x28', 0x80),
		inRecord('\x18', 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01))
	return all
}

// FuzzCodecReads compares what the codec makes of a request with what package proto does.
func FuzzCodecReads(f *testing.F) {
	for _, data := range requests(f) {
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var want, got kdedupv1.JudgeRequest
		wantErr := proto.Unmarshal(data, &want)
		ours := bytes.Clone(data)
		gotErr := codec{batch: 1000}.Unmarshal(ours, &got)
		if (wantErr == nil) != (gotErr == nil) {
			t.Fatalf("%x: %v, want %v", data, gotErr, wantErr)
		}
		clear(ours) // connect uses it again
		if wantErr == nil && !proto.Equal(&want, &got) {
			t.Fatalf("%x: %v, want %v", data, &got, &want)
		}
	})
}

func TestABatchThatIsTooLargeTakesNoMemoryAtOnce(t *testing.T) {
	data := inOrder(t, of(make([]*kdedupv1.Message, 11)...))
	var got kdedupv1.JudgeRequest
	if err := (codec{batch: 10}).Unmarshal(data, &got); err != nil || len(got.GetMessages()) != 11 {
		t.Fatalf("%d messages, %v, want 11, for the method to refuse", len(got.GetMessages()), err)
	}
}

// FuzzCodecWrites compares the bytes of an answer with those that package proto writes.
func FuzzCodecWrites(f *testing.F) {
	f.Add("orders", []byte{}, []byte{}, int32(3), int64(812), int32(-1), int64(1), int32(2),
		byte(0))
	f.Add("", make([]byte, 16), []byte{}, int32(-1), int64(-1), int32(0), int64(-1), int32(-2),
		byte(3))
	f.Add(strings.Repeat("a", 200), make([]byte, 16), make([]byte, 28), int32(math.MaxInt32),
		int64(math.MaxInt64), int32(9), int64(0), int32(0), byte(5))
	f.Add(strings.Repeat("b", 20_000), []byte{}, []byte{}, int32(0), int64(0), int32(0), int64(0),
		int32(0), byte(7))
	f.Fuzz(func(t *testing.T, topic string, id, digest []byte, partition int32, offset int64,
		epoch int32, seconds int64, nanos int32, kind byte,
	) {
		record := &kdedupv1.Record{Topic: strings.ToValidUTF8(topic, ""), TopicId: id,
			Partition: partition, Offset: offset}
		owner := &kdedupv1.Owner{Record: record, Digest: digest, ByHand: kind&1 != 0}
		if kind&2 != 0 {
			record.LeaderEpoch = &epoch
		}
		if kind&4 != 0 {
			owner.Record = nil
		}
		response := &kdedupv1.JudgeResponse{Judgements: []*kdedupv1.Judgement{
			{Verdict: kdedupv1.Verdict(kind % 6), Owner: owner,
				ClaimedAt: &timestamppb.Timestamp{Seconds: seconds, Nanos: nanos}},
			{}, {Owner: &kdedupv1.Owner{}, ClaimedAt: &timestamppb.Timestamp{}}}}
		got, err := codec{}.Marshal(response)
		if want := inOrder(t, response); err != nil || !bytes.Equal(got, want) {
			t.Fatalf("%x, %v, want %x", got, err, want)
		}
	})
}

// A field that somebody adds to the answer must not get lost on its way.
func TestTheCodecWritesEveryFieldOfAnAnswer(t *testing.T) {
	response := &kdedupv1.JudgeResponse{}
	fill(t, response.ProtoReflect())
	got, err := codec{}.Marshal(response)
	if want := inOrder(t, response); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%v is written as %x, %v, want %x", response, got, err, want)
	}
}

// fill gives each field of a message a value that is not its zero.
func fill(t *testing.T, m protoreflect.Message) {
	t.Helper()
	for i := range m.Descriptor().Fields().Len() {
		field := m.Descriptor().Fields().Get(i)
		switch {
		case field.IsList():
			fill(t, m.Mutable(field).List().AppendMutable().Message())
		case field.Message() != nil:
			fill(t, m.Mutable(field).Message())
		default:
			m.Set(field, valueOf(t, field))
		}
	}
}

func valueOf(t *testing.T, field protoreflect.FieldDescriptor) protoreflect.Value {
	t.Helper()
	switch field.Kind() {
	case protoreflect.StringKind:
		return protoreflect.ValueOfString("a")
	case protoreflect.BytesKind:
		return protoreflect.ValueOfBytes([]byte{1})
	case protoreflect.BoolKind:
		return protoreflect.ValueOfBool(true)
	case protoreflect.EnumKind:
		return protoreflect.ValueOfEnum(1)
	case protoreflect.Int32Kind:
		return protoreflect.ValueOfInt32(1)
	case protoreflect.Int64Kind:
		return protoreflect.ValueOfInt64(1)
	}
	t.Fatalf("%s: neither this test nor the codec knows fields of the kind %s", field.FullName(),
		field.Kind())
	return protoreflect.Value{}
}
