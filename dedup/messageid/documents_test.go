package messageid_test

import (
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/twmb/avro"
	"github.com/twmb/franz-go/pkg/kgo"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/dedup/messageid"
)

const (
	rowV1 = `{"type":"record","name":"Row","fields":[{"name":"id","type":"long"},` +
		`{"name":"name","type":["null","string"]},{"name":"deleted","type":"boolean"},` +
		`{"name":"source","type":{"type":"record","name":"S","fields":[` +
		`{"name":"lsn","type":"long"},{"name":"ts_ms","type":"long"}]}},` +
		`{"name":"ts_ms","type":"long"}]}`
	rowProto = `syntax = "proto3"; message Row { message S { int64 lsn = 1; int64 ts_ms = 2; } ` +
		`int64 id = 1; string name = 2; bool deleted = 3; S source = 4; int64 ts_ms = 5; }`
)

// rowV2 has one more field, which may be null, before the others.
var rowV2 = strings.Replace(rowV1, `{"name":"id"`,
	`{"name":"new","type":["null","string"],"default":null},{"name":"id"`, 1)

// row is what both formats hold.
type row struct {
	id            int64
	name          string
	deleted       bool
	lsn, ts, when int64 // source.lsn, source.ts_ms, ts_ms
}

func (r row) avro(t *testing.T, schema string) string {
	t.Helper()
	m := map[string]any{"id": r.id, "name": nil, "deleted": r.deleted, "ts_ms": r.when,
		"source": map[string]any{"lsn": r.lsn, "ts_ms": r.ts}, "new": nil}
	if r.name != "" {
		m["name"] = r.name
	}
	data, err := avro.MustParse(schema).Encode(m)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// protobuf writes its fields in any order, behind the index of the message.
func (r row) protobuf(order []int) string {
	number := func(field protowire.Number, n int64) []byte {
		return protowire.AppendVarint(protowire.AppendTag(nil, field, protowire.VarintType),
			uint64(n))
	}
	source := append(number(2, r.ts), number(1, r.lsn)...)
	fields := [][]byte{number(1, r.id), nil, nil,
		protowire.AppendBytes(protowire.AppendTag(nil, 4, protowire.BytesType), source),
		number(5, r.when)}
	if r.name != "" {
		fields[1] = protowire.AppendString(protowire.AppendTag(nil, 2, protowire.BytesType), r.name)
	}
	if r.deleted {
		fields[2] = number(3, 1)
	}
	body := []byte{0}
	for _, i := range order {
		body = append(body, fields[i]...)
	}
	return string(body)
}

func rows() *shelf {
	return &shelf{schemas: map[uint32]messageid.Schema{1: {Type: "avro", Text: rowV1},
		2: {Type: "avro", Text: rowV2}, 3: {Type: "protobuf", Text: rowProto},
		4: {Type: "avro", Text: `{"type":`}}}
}

// schematic is an extractor with rules about a format; the ID is the key.
func schematic(t *testing.T, rules messageid.Rules) *messageid.Extractor {
	t.Helper()
	e, err := mustExtractor(t, messageid.Source{From: "key"}).With(rules)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// read is the record once the registry was asked for what it needs.
func read(t *testing.T, e *messageid.Extractor, value []byte) *kgo.Record {
	t.Helper()
	r := &kgo.Record{Key: []byte("k"), Value: value}
	if _, _, err := dedup.ExtractNow(t.Context(), e, r); err != nil {
		t.Fatal(err)
	}
	return r
}

func TestFieldsOfRandomRowsCountOrDoNot(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	ignored := []string{"ts_ms", "source.ts_ms", "gone.at"}
	chosen := []string{"id", "name", "deleted", "source.lsn"}
	for _, format := range []string{messageid.FormatAvro, messageid.FormatProtobuf} {
		write := func(r row) []byte {
			if format == messageid.FormatProtobuf {
				return framed(3, r.protobuf(random.Perm(5)))
			}
			if random.IntN(2) == 0 {
				return framed(2, r.avro(t, rowV2))
			}
			return framed(1, r.avro(t, rowV1))
		}
		for _, content := range []messageid.Content{{Ignore: ignored}, {Only: chosen}} {
			content.Format = format
			e := schematic(t, messageid.Rules{Fingerprint: content, Registry: rows()})
			f := e.Fingerprinter()
			hash := mustExtractor(t, messageid.Source{From: "value_hash", Registry: rows(),
				Format: format, Ignore: content.Ignore, Only: content.Only})
			for range 300 {
				draw := func() row {
					return row{random.Int64N(2), []string{"", "n"}[random.IntN(2)],
						random.IntN(2) == 0, random.Int64N(2), random.Int64(), random.Int64()}
				}
				one, two := draw(), draw()
				same := one.id == two.id && one.name == two.name && one.deleted == two.deleted &&
					one.lsn == two.lsn
				a, b := read(t, e, write(one)), read(t, e, write(two))
				if got := f.Of(a).Matches(f.Of(b)); got != same {
					t.Fatalf("%s %v: %+v and %+v are the same: %v", format, content, one, two, got)
				}
				if !e.Partial(a) {
					t.Fatalf("%s %v: %+v counts as a whole", format, content, one)
				}
				read(t, hash, a.Value)
				read(t, hash, b.Value)
				first, missing := hash.Extract(a)
				second, _ := hash.Extract(b)
				if missing != dedup.NotMissing || (first == second) != same {
					t.Fatalf("%s %v: the IDs of %+v and %+v: %x, %x, %v", format, content, one, two,
						first, second, missing)
				}
			}
		}
	}
}

func TestWhatCannotBeReadByItsSchemaCountsAsAWhole(t *testing.T) {
	e := schematic(t, messageid.Rules{Registry: rows(), Fingerprint: messageid.Content{
		Format: messageid.FormatAvro, Ignore: []string{"ts_ms"}}})
	good := row{id: 1}.avro(t, rowV1)
	plain := messageid.NewFingerprinter()
	for name, value := range map[string][]byte{
		"no frame": []byte(`{"ts_ms":1}`), "a tombstone": nil, "nothing": {},
		"a schema that there is not": framed(99, good), "one of another kind": framed(3, good),
		"one that cannot be read": framed(4, good), "a cut record": framed(1, good[:3]),
		"more than a record": framed(1, good+"x"),
	} {
		r := read(t, e, value)
		if id, missing := e.Extract(r); id != "k" || missing != dedup.NotMissing {
			t.Errorf("%s: %q, %v", name, id, missing)
		}
		if e.Fingerprinter().Of(r) != plain.Of(r) || e.Partial(r) {
			t.Errorf("%s: it does not count as a whole", name)
		}
	}
	if got := e.Notice(); !strings.Contains(got, "are looked at as a whole") {
		t.Errorf("told %q", got)
	}
}

func TestAFieldThatCountsMayBeLeftOut(t *testing.T) {
	only := func(paths ...string) (*messageid.Extractor, func(row) dedup.Fingerprint) {
		e := schematic(t, messageid.Rules{Registry: rows(), Fingerprint: messageid.Content{
			Format: messageid.FormatProtobuf, Only: paths}})
		return e, func(r row) dedup.Fingerprint {
			return e.Fingerprinter().Of(read(t, e, framed(3, r.protobuf([]int{0, 1, 2, 3}))))
		}
	}
	_, of := only("name", "deleted", "gone")
	if !of(row{id: 1, name: "n"}).Matches(of(row{id: 2, name: "n"})) ||
		!of(row{id: 1}).Matches(of(row{id: 2})) {
		t.Error("a field that is not written makes others count")
	}
	if of(row{id: 1, name: "n"}).Matches(of(row{id: 1, deleted: true})) {
		t.Error("one field is taken for another")
	}
	e, of := only("gone", "id.gone")
	if of(row{id: 1}).Matches(of(row{id: 2})) {
		t.Error("messages of a schema without the fields are all the same")
	}
	if got := e.Notice(); !strings.Contains(got, "message Row has no field gone") &&
		!strings.Contains(got, "what stands before id.gone is no message") {
		t.Errorf("told %q", got)
	}
}

func TestRecordsWaitForTheSchemasOfTheirContent(t *testing.T) {
	registry := rows()
	registry.down = errors.New("connection refused")
	value := framed(1, row{id: 1}.avro(t, rowV1))
	avroField := messageid.Source{From: "avro", Path: "deleted", Registry: registry}
	for name, e := range map[string]*messageid.Extractor{
		"fingerprint": schematic(t, messageid.Rules{Registry: registry,
			Fingerprint: messageid.Content{Format: "avro", Ignore: []string{"ts_ms"}}}),
		"only_if": schematic(t, messageid.Rules{OnlyIf: &messageid.Condition{Place: avroField}}),
		"value_hash": mustExtractor(t, messageid.Source{From: "value_hash", Format: "avro",
			Ignore: []string{"ts_ms"}, Registry: registry}),
	} {
		registry.down = errors.New("connection refused")
		r := &kgo.Record{Key: []byte("k"), Value: value}
		if _, missing := e.Extract(r); missing != dedup.MissingUnresolved {
			t.Errorf("%s: %v before the registry was asked", name, missing)
		}
		if err := e.Resolve(t.Context(), []*kgo.Record{r}); !errors.Is(err, registry.down) {
			t.Errorf("%s: %v", name, err)
		}
		if _, missing := e.Extract(r); missing != dedup.MissingUnresolved {
			t.Errorf("%s: %v while it is down", name, missing)
		}
		registry.down = nil
		if err := e.Resolve(t.Context(), []*kgo.Record{r}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if _, missing := e.Extract(r); missing != dedup.NotMissing {
			t.Errorf("%s: %v", name, missing)
		}
	}
}

func TestAConditionLooksIntoRecordsWithASchema(t *testing.T) {
	for _, c := range []struct {
		path  string
		is    []string
		value []byte
		want  dedup.MissingReason
	}{
		{"deleted", []string{"true"}, framed(1, row{deleted: true}.avro(t, rowV1)),
			dedup.NotMissing},
		{"deleted", []string{"true"}, framed(1, row{}.avro(t, rowV1)), dedup.MissingExempt},
		{"name", nil, framed(1, row{name: "n"}.avro(t, rowV1)), dedup.NotMissing},
		{"name", nil, framed(1, row{}.avro(t, rowV1)), dedup.MissingExempt},
		{"source.lsn", []string{"7"}, framed(2, row{lsn: 7}.avro(t, rowV2)), dedup.NotMissing},
		{"source", nil, framed(1, row{}.avro(t, rowV1)), dedup.NotMissing},
		{"source", []string{"x"}, framed(1, row{}.avro(t, rowV1)), dedup.MissingExempt},
		{"nope", nil, framed(1, row{}.avro(t, rowV1)), dedup.MissingExempt},
		{"name", nil, nil, dedup.MissingExempt},
		// what cannot be read may have the value
		{"name", nil, framed(99, ""), dedup.NotMissing},
		{"name", nil, framed(4, ""), dedup.NotMissing},
		{"name", nil, framed(1, "x"), dedup.NotMissing},
		{"name", nil, []byte(`{}`), dedup.NotMissing},
	} {
		e := schematic(t, messageid.Rules{OnlyIf: &messageid.Condition{Is: c.is,
			Place: messageid.Source{From: "avro", Path: c.path, Registry: rows()}}})
		if _, got := e.Extract(read(t, e, c.value)); got != c.want {
			t.Errorf("%s %v of %x: %v, want %v", c.path, c.is, c.value, got, c.want)
		}
	}
}

func TestAnotherFormatIsAnotherFingerprint(t *testing.T) {
	names := make(map[string]bool)
	for _, format := range []string{"", "json", "avro", "protobuf"} {
		e := withContent(t, messageid.Content{Format: format, Ignore: []string{"a"}})
		names[e.String()] = true
	}
	if len(names) != 3 {
		t.Errorf("scopes are told apart by %v", names)
	}
	_, err := mustExtractor(t, messageid.Source{From: "key"}).With(messageid.Rules{
		Fingerprint: messageid.Content{Format: "xml", Ignore: []string{"a"}}})
	if err == nil || !strings.Contains(err.Error(), `"xml" is not json, avro or protobuf`) {
		t.Errorf("an unknown format: %v", err)
	}
}

// A stored fingerprint is compared with those of later versions.
func TestTheFingerprintOfARowStays(t *testing.T) {
	for format, value := range map[string][]byte{
		"avro":     framed(1, row{1, "n", true, 2, 3, 4}.avro(t, rowV1)),
		"protobuf": framed(3, row{1, "n", true, 2, 3, 4}.protobuf([]int{4, 3, 2, 1, 0})),
	} {
		e := schematic(t, messageid.Rules{Registry: rows(), Fingerprint: messageid.Content{
			Format: format, Ignore: []string{"ts_ms"}}})
		got := e.Fingerprinter().Of(read(t, e, value))
		if want := storedFingerprints[format]; binary.BigEndian.Uint64(got[:8]) != want {
			t.Errorf("%s: %#x, stored was %#x", format, got[:8], want)
		}
	}
}

var storedFingerprints = map[string]uint64{"avro": 0xf5b09000a0233d8a,
	"protobuf": 0x8ca23f9c6453f1c3}

func TestAReaderHasTheDocumentThatIsCompared(t *testing.T) {
	registry := rows()
	reader, err := messageid.NewReader(messageid.FormatAvro, registry)
	if err != nil {
		t.Fatal(err)
	}
	registry.down = errors.New("connection refused")
	r := &kgo.Record{Value: framed(1, row{id: 7, name: "n"}.avro(t, rowV1))}
	if _, _, err := reader.Document(t.Context(), r); !errors.Is(err, registry.down) {
		t.Errorf("while the registry is down: %v", err)
	}
	registry.down = nil
	doc, ok, err := reader.Document(t.Context(), r)
	if want := `{"id":7,"name":"n","deleted":false,"source":{"lsn":0,"ts_ms":0},"ts_ms":0}`; !ok ||
		err != nil || string(doc) != want {
		t.Errorf("got %s, %v, %v, want %s", doc, ok, err, want)
	}
	for name, value := range map[string][]byte{"no frame": []byte("{}"), "a tombstone": nil,
		"no such schema": framed(99, ""), "a cut record": framed(1, "")} {
		if doc, ok, err := reader.Document(t.Context(), &kgo.Record{Value: value}); ok ||
			err != nil {
			t.Errorf("%s: %s, %v, %v", name, doc, ok, err)
		}
	}
	if _, err := messageid.NewReader("xml", nil); err == nil {
		t.Error("an unknown format is accepted")
	}
}

func TestSpellingsOfOneIDAreRespelledAlike(t *testing.T) {
	for _, spellings := range [][]dedup.ID{
		{"order-1", " order-1\n", `"order-1"`, ` "Order-1"`, "ORDER-1"},
		{"0a12c11d-71fa-4a2d-a02e-350ec8fc9e34", "{0A12C11D-71FA-4A2D-A02E-350EC8FC9E34}",
			"urn:uuid:0a12c11d-71fa-4a2d-a02e-350ec8fc9e34", `"0a12c11d71fa4a2da02e350ec8fc9e34"`},
		{"", " ", `""`},
	} {
		for _, id := range spellings {
			if got := messageid.Respelled(id); got != spellings[0] {
				t.Errorf("%q becomes %q, want %q", id, got, spellings[0])
			}
		}
	}
}
