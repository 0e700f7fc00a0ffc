package messageid_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/dedup/messageid"
)

// shelf has schemas by ID, and counts the questions.
type shelf struct {
	mu      sync.Mutex
	schemas map[uint32]messageid.Schema
	down    error
	asked   map[uint32]int
}

func (s *shelf) Schema(_ context.Context, id uint32) (messageid.Schema, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.asked == nil {
		s.asked = make(map[uint32]int)
	}
	s.asked[id]++
	found, known := s.schemas[id]
	switch {
	case s.down != nil:
		return messageid.Schema{}, s.down
	case !known:
		return messageid.Schema{}, fmt.Errorf("schema %d: %w", id, messageid.ErrUnknownSchema)
	}
	return found, nil
}

func framed(id uint32, body string) []byte {
	return append(binary.BigEndian.AppendUint32([]byte{0}, id), body...)
}

const (
	avroV1 = `{"type":"record","name":"O","fields":[{"name":"id","type":"string"}]}`
	avroV2 = `{"type":"record","name":"O","fields":[{"name":"n","type":"int"},` +
		`{"name":"id","type":"string"}]}`
	avroOther = `{"type":"record","name":"O","fields":[{"name":"key","type":"string"}]}`
	proto     = `syntax = "proto3"; message A { string id = 1; ` +
		`message B { int32 n = 1; string id = 2; } }`
)

func shelved() *shelf {
	return &shelf{schemas: map[uint32]messageid.Schema{
		1: {Type: "avro", Text: avroV1}, 2: {Type: "avro", Text: avroV2},
		3: {Type: "avro", Text: avroOther}, 4: {Type: "protobuf", Text: proto},
		5: {Type: "avro", Text: `{"type":`}, 6: {Type: "protobuf", Text: `message`},
		7: {Type: "avro", Text: `"boolean"`},
		8: {Type: "avro", Text: strings.Replace(avroV1, `"string"`, `"boolean"`, 1)},
	}}
}

func extract(
	t *testing.T, e *messageid.Extractor, r *kgo.Record,
) (dedup.ID, dedup.MissingReason) {
	t.Helper()
	id, missing, err := dedup.ExtractNow(t.Context(), e, r)
	if err != nil {
		t.Fatal(err)
	}
	return id, missing
}

func TestIDsStandBehindTheIDOfTheirSchema(t *testing.T) {
	for _, c := range []struct {
		name, from string
		value      []byte
		want       dedup.ID
		missing    dedup.MissingReason
	}{
		{"avro", "avro", framed(1, "\x02a"), "a", 0},
		{"another version of the schema", "avro", framed(2, "\x0e\x02a"), "a", 0},
		{"a version without the field", "avro", framed(3, "\x02a"), "", dedup.MissingAbsent},
		{"a field that is no ID", "avro", framed(8, "\x01"), "", dedup.MissingUnsupportedType},
		{"no record", "avro", framed(7, "\x01"), "", dedup.MissingAbsent},
		{"a schema that is none", "avro", framed(5, "\x02a"), "", dedup.MissingUnusableSchema},
		{"a schema of another kind", "avro", framed(4, "\x02a"), "", dedup.MissingUnusableSchema},
		{"a schema that nobody has", "avro", framed(99, "\x02a"), "", dedup.MissingUnknownSchema},
		{"a cut record", "avro", framed(1, "\x04a"), "", dedup.MissingUnparsable},
		{"no bytes behind the frame", "avro", framed(1, ""), "", dedup.MissingUnparsable},
		{"an empty ID", "avro", framed(1, "\x00"), "", dedup.MissingEmpty},
		{"no frame", "avro", []byte(`{"id":"a"}`), "", dedup.MissingUnframed},
		{"half a frame", "avro", []byte("\x00\x00\x00"), "", dedup.MissingUnframed},
		{"a tombstone", "avro", nil, "", dedup.MissingNull},
		{"an empty value", "avro", []byte{}, "", dedup.MissingEmpty},
		{"protobuf", "protobuf", framed(4, "\x00\x0a\x01a"), "a", 0},
		{"its first message by an index", "protobuf", framed(4, "\x02\x00\x0a\x01a"), "a", 0},
		{"a message in a message", "protobuf", framed(4, "\x04\x00\x00\x08\x07\x12\x01b"), "b", 0},
		{"no such message", "protobuf", framed(4, "\x02\x08\x0a\x01a"), "",
			dedup.MissingUnusableSchema},
		{"more indexes than there can be", "protobuf", framed(4, "\xfe\x7f"), "",
			dedup.MissingUnparsable},
		{"no indexes", "protobuf", framed(4, ""), "", dedup.MissingUnparsable},
		{"a negative index", "protobuf", framed(4, "\x02\x01"), "", dedup.MissingUnusableSchema},
		{"a schema that is no protobuf", "protobuf", framed(6, "\x00"), "",
			dedup.MissingUnusableSchema},
		{"json_schema", "json_schema", framed(1000, `{"id":"a"}`), "a", 0},
		{"json_schema without a frame", "json_schema", []byte(`{"id":"a"}`), "",
			dedup.MissingUnframed},
	} {
		for _, part := range []string{"value", "key"} {
			e := mustExtractor(t, messageid.Source{From: c.from, Path: "id", Part: part,
				Registry: shelved()})
			r := &kgo.Record{Value: c.value}
			if part == "key" {
				r = &kgo.Record{Key: c.value}
			}
			if id, missing := extract(t, e, r); id != c.want || missing != c.missing {
				t.Errorf("%s of the %s: %q, %v, want %q, %v", c.name, part, id, missing, c.want,
					c.missing)
			}
		}
	}
}

func TestASchemaIsAskedForOnce(t *testing.T) {
	s := shelved()
	e := mustExtractor(t, messageid.Source{From: "avro", Path: "id", Registry: s})
	records := []*kgo.Record{{Value: framed(1, "\x02a")}, {Value: framed(2, "\x00\x02a")},
		{Value: framed(1, "\x02b")}, {Value: []byte("unframed")}, {}}
	for range 3 {
		if err := e.Resolve(t.Context(), records); err != nil {
			t.Fatal(err)
		}
	}
	if want := map[uint32]int{1: 1, 2: 1}; !maps.Equal(s.asked, want) {
		t.Errorf("asked %v, want %v", s.asked, want)
	}
}

func TestARegistryThatIsDownLeavesIDsOpen(t *testing.T) {
	s := shelved()
	s.down = errors.New("connection refused")
	for _, source := range []messageid.Source{
		{From: "avro", Path: "id", Registry: s},
		{From: "first_of", Parts: []messageid.Source{{From: "avro", Path: "id", Registry: s},
			{From: "header", Name: "id"}}},
		{From: "composite", Parts: []messageid.Source{{From: "header", Name: "id"},
			{From: "avro", Path: "id", Registry: s}}},
	} {
		e := mustExtractor(t, source)
		r := &kgo.Record{Value: framed(1, "\x02a"), Headers: headers("id", "h")}
		if _, missing := e.Extract(r); missing != dedup.MissingUnresolved {
			t.Errorf("%s: %v", e, missing)
		}
		err := e.Resolve(t.Context(), []*kgo.Record{r})
		if !errors.Is(err, s.down) || !strings.Contains(err.Error(), "schema 1") {
			t.Errorf("%s: %v", e, err)
		}
		if _, missing := e.Extract(r); missing != dedup.MissingUnresolved {
			t.Errorf("%s: %v", e, missing)
		}
	}
}

// A follower of the registry may not know a new schema yet.
func TestADenialHoldsForAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := shelved()
		e := mustExtractor(t, messageid.Source{From: "avro", Path: "id", Registry: s})
		r := &kgo.Record{Value: framed(99, "\x02a")}
		if _, missing := extract(t, e, r); missing != dedup.MissingUnknownSchema {
			t.Error(missing)
		}
		s.schemas[99] = messageid.Schema{Type: "avro", Text: avroV1}
		time.Sleep(59 * time.Second)
		if _, missing := extract(t, e, r); missing != dedup.MissingUnknownSchema {
			t.Error(missing)
		}
		time.Sleep(2 * time.Second)
		if id, missing := extract(t, e, r); id != "a" || s.asked[99] != 2 {
			t.Errorf("%q, %v, asked %d times", id, missing, s.asked[99])
		}
	})
}

func TestWhatASchemaLacksIsToldOnce(t *testing.T) {
	e := mustExtractor(t, messageid.Source{From: "avro", Path: "id", Registry: shelved()})
	glue := append([]byte{3, 5}, make([]byte, 16)...)
	for range 3 {
		for _, value := range [][]byte{framed(3, "\x02a"), framed(4, ""), glue} {
			extract(t, e, &kgo.Record{Value: value})
		}
	}
	var told []string
	for notice := e.Notice(); notice != ""; notice = e.Notice() {
		told = append(told, notice)
	}
	all := strings.Join(told, "\n")
	for _, want := range []string{"schema 3 have no message ID: the schema has no such field: " +
		"record O has no field id", "it is of type protobuf, not avro", "AWS Glue"} {
		if strings.Count(all, want) != 1 {
			t.Errorf("%q is not told once:\n%s", want, all)
		}
	}
}

func TestASchemaIsCheckedBeforeARecordComes(t *testing.T) {
	s := shelved()
	for _, c := range []struct {
		from, path string
		id         uint32
		fits       bool
	}{{"avro", "id", 1, true}, {"avro", "id", 3, false}, {"avro", "id", 4, false},
		{"avro", "id", 5, false}, {"protobuf", "n", 4, true}, {"protobuf", "x", 4, false},
		{"json_schema", "id", 1, false}} {
		err := messageid.CheckSchema(messageid.Source{From: c.from, Path: c.path}, s.schemas[c.id])
		if (err == nil) != c.fits {
			t.Errorf("%s %s of schema %d: %v", c.from, c.path, c.id, err)
		}
	}
}

func TestFramedSourcesHaveNamesOfTheirOwn(t *testing.T) {
	for want, source := range map[string]messageid.Source{
		`avro:"a.0"`:             {From: "avro", Path: "a[0]"},
		`avro_key:"id"`:          {From: "avro", Path: "id", Part: "key"},
		`protobuf:"id"|lower`:    {From: "protobuf", Path: "id", Normalize: []string{"lower"}},
		`json_schema:"p"|"id"`:   {From: "json_schema", Path: "p|json.id"},
		`json_schema_key:"json"`: {From: "json_schema", Path: "json", Part: "key"},
	} {
		if e := mustExtractor(t, source); e.String() != want {
			t.Errorf("%s, want %s", e, want)
		}
	}
	for _, bad := range []messageid.Source{{From: "avro"}, {From: "avro", Path: "p|json.id"},
		{From: "protobuf", Path: "a", Part: "header"}} {
		if _, err := messageid.New(bad); err == nil {
			t.Errorf("%v is accepted", bad)
		}
	}
}

// FuzzFramed: whatever a record holds, it has an ID or a reason, and the same one again.
func FuzzFramed(f *testing.F) {
	f.Add(framed(1, "\x02a"))
	f.Add(framed(4, "\x04\x00\x00\x08\x07\x12\x01b"))
	var all []*messageid.Extractor
	for _, from := range []string{"avro", "protobuf", "json_schema"} {
		all = append(all, mustExtractor(f, messageid.Source{From: from, Path: "id",
			Registry: shelved()}))
	}
	f.Fuzz(func(t *testing.T, value []byte) {
		before := bytes.Clone(value)
		for _, e := range all {
			r := &kgo.Record{Value: value}
			id, missing, err := dedup.ExtractNow(t.Context(), e, r)
			again, reason, _ := dedup.ExtractNow(t.Context(), e, r)
			if err != nil || missing == dedup.MissingUnresolved || again != id ||
				reason != missing || (id == "") != (missing != dedup.NotMissing) {
				t.Fatalf("%s: %q, %v, %v; then %q, %v", e, id, missing, err, again, reason)
			}
		}
		if !bytes.Equal(before, value) {
			t.Fatal("the record was changed")
		}
	})
}

// BenchmarkFramed takes an ID out of an Avro record of 1 KiB.
func BenchmarkFramed(b *testing.B) {
	s := &shelf{schemas: map[uint32]messageid.Schema{1: {Type: "avro", Text: `{"type":"record",` +
		`"name":"O","fields":[{"name":"note","type":"string"},{"name":"n","type":` +
		`{"type":"array","items":"long"}},{"name":"id","type":"string"}]}`}}}
	body := binary.AppendVarint(nil, 900)
	body = append(append(body, make([]byte, 900)...), 0x50)
	body = append(append(body, bytes.Repeat([]byte{2}, 40)...), 0)
	body = append(append(body, 72), "0a12c11d-71fa-4a2d-a02e-350ec8fc9e34"...)
	e := mustExtractor(b, messageid.Source{From: "avro", Path: "id", Registry: s})
	r := &kgo.Record{Value: framed(1, string(body))}
	if _, _, err := dedup.ExtractNow(b.Context(), e, r); err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(r.Value)))
	b.ReportAllocs()
	for b.Loop() {
		if _, missing := e.Extract(r); missing != dedup.NotMissing {
			b.Fatal(missing)
		}
	}
}
