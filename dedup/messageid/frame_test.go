package messageid_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/dedup/messageid"
)

// library has schemas by every kind of name.
type library struct {
	*shelf
	refs    map[messageid.Ref]messageid.Schema
	framing messageid.Framing
}

func (l library) Framing() messageid.Framing { return l.framing }

func (l library) SchemaOf(
	ctx context.Context, ref messageid.Ref,
) (messageid.Schema, error) {
	if ref.Kind == messageid.RefID {
		return l.Schema(ctx, uint32(ref.Number()))
	}
	if s, known := l.refs[ref]; known {
		return s, nil
	}
	return messageid.Schema{}, fmt.Errorf("%s: %w", ref, messageid.ErrUnknownSchema)
}

func guid(n byte) (g [16]byte) {
	for i := range g {
		g[i] = n + byte(i)
	}
	return g
}

func libraryOf(framing messageid.Framing) library {
	l := library{shelved(), make(map[messageid.Ref]messageid.Schema), framing}
	for id, schema := range l.schemas {
		n := uint64(id)
		l.refs[messageid.GUIDRef(guid(byte(id)))] = schema
		l.refs[messageid.NumberRef(messageid.RefContentID, 100+n)] = schema
		l.refs[messageid.NumberRef(messageid.RefGlobalID, 1<<40+n)] = schema
		l.refs[messageid.NumberRef(messageid.RefFingerprint, 200+n)] = schema
	}
	l.refs[messageid.NumberRef(messageid.RefGlobalID, 7)] = l.schemas[1]
	return l
}

// framings write a body under a schema of the shelf, each in its way.
var framings = map[string]func(schema uint32, part, body string) *kgo.Record{
	"before the value": func(schema uint32, part, body string) *kgo.Record {
		return &kgo.Record{Value: framed(schema, body)}
	},
	"a GUID": func(schema uint32, part, body string) *kgo.Record {
		g := guid(byte(schema))
		return &kgo.Record{Value: []byte(body), Headers: headers("a", "b",
			"__"+part+"_schema_id", "\x01"+string(g[:]))}
	},
	"a number in a header": func(schema uint32, part, body string) *kgo.Record {
		return &kgo.Record{Value: []byte(body), Headers: headers("__"+part+"_schema_id",
			string(framed(schema, "")))}
	},
	"contentId": func(schema uint32, part, body string) *kgo.Record {
		return &kgo.Record{Value: []byte(body), Headers: headers("apicurio."+part+".contentId",
			string(binary.BigEndian.AppendUint64(nil, uint64(schema)+100)),
			"apicurio."+part+".encoding", "BINARY")}
	},
	"globalId": func(schema uint32, part, body string) *kgo.Record {
		return &kgo.Record{Value: []byte(body), Headers: headers("apicurio."+part+".globalId",
			string(binary.BigEndian.AppendUint64(nil, uint64(schema)+1<<40)))}
	},
	"single object": func(schema uint32, part, body string) *kgo.Record {
		return &kgo.Record{Value: append(binary.LittleEndian.AppendUint64([]byte("\xC3\x01"),
			uint64(schema)+200), body...)}
	},
}

// A topic may hold records of several serializers, while its producers change from one to another.
func TestAMessageHasOneIDInEveryFraming(t *testing.T) {
	random := rand.New(rand.NewPCG(46, 1))
	for _, part := range []string{"value", "key"} {
		e := mustExtractor(t, messageid.Source{From: "avro", Path: "id", Part: part,
			Registry: libraryOf(messageid.Framing{})})
		for range 3000 {
			text := fmt.Sprint(random.IntN(1000))
			body, schema := string(binary.AppendVarint(nil, int64(len(text))))+text, uint32(1)
			if random.IntN(2) == 0 {
				body, schema = string(binary.AppendVarint(nil, random.Int64N(1<<20)))+body, 2
			}
			for name, write := range framings {
				r := write(schema, part, body)
				if part == "key" {
					r.Key, r.Value = r.Value, []byte("x")
				}
				if id, missing := extract(t, e, r); id != dedup.ID(text) || missing != 0 {
					t.Fatalf("%s of the %s: %q, %v, want %q", name, part, id, missing, text)
				}
			}
		}
	}
}

// Serializers write a key that is a text or a number as Avro, too, with no record around it.
func TestAWholeKeyOrValueIsAnIDInEveryFraming(t *testing.T) {
	l := libraryOf(messageid.Framing{})
	bare := []messageid.Schema{{Type: "avro", Text: `"string"`}, {Type: "avro", Text: `"long"`},
		{Type: "avro", Text: `["null","string"]`}, {Type: "avro", Text: avroV1}}
	for i, s := range bare {
		n := uint64(20 + i)
		l.schemas[uint32(n)] = s
		l.refs[messageid.GUIDRef(guid(byte(n)))] = s
		l.refs[messageid.NumberRef(messageid.RefContentID, 100+n)] = s
		l.refs[messageid.NumberRef(messageid.RefGlobalID, 1<<40+n)] = s
		l.refs[messageid.NumberRef(messageid.RefFingerprint, 200+n)] = s
	}
	for _, part := range []string{"value", "key"} {
		source := messageid.Source{From: "avro", Path: "$", Part: part, Registry: l}
		e := mustExtractor(t, source)
		for _, row := range []struct {
			schema  uint32
			body    string
			want    dedup.ID
			missing dedup.MissingReason
		}{
			{20, "\x06a-1", "a-1", 0}, {21, "\x0d", "-7", 0}, {22, "\x02\x06a-1", "a-1", 0},
			{22, "\x00", "", dedup.MissingNull}, {20, "\x08a-1", "", dedup.MissingUnparsable},
			{23, "\x06a-1", "", dedup.MissingUnsupportedType},
		} {
			for name, write := range framings {
				r := write(row.schema, part, row.body)
				if part == "key" {
					r.Key, r.Value = r.Value, []byte("x")
				}
				if id, missing := extract(t, e, r); id != row.want || missing != row.missing {
					t.Errorf("%s of the %s: %q, %v, want %q, %v", name, part, id, missing, row.want,
						row.missing)
				}
			}
			err := messageid.CheckSchema(source, bare[row.schema-20])
			if (err != nil) != (row.schema == 23) {
				t.Errorf("schema %s: %v", bare[row.schema-20].Text, err)
			}
		}
	}
	for _, from := range []string{"json", "json_schema"} {
		_, err := messageid.New(messageid.Source{From: from, Path: "$", Registry: l})
		if err == nil {
			t.Errorf("%s has a whole", from)
		}
	}
}

func TestWhichProtobufMessageItIsStandsInTheHeader(t *testing.T) {
	e := mustExtractor(t, messageid.Source{From: "protobuf", Path: "id",
		Registry: libraryOf(messageid.Framing{})})
	g := guid(4)
	for indexes, c := range map[string]struct {
		body    string
		want    dedup.ID
		missing dedup.MissingReason
	}{
		"\x00":         {"\x0a\x01a", "a", 0},
		"\x04\x00\x00": {"\x08\x07\x12\x01b", "b", 0},
		"":             {"\x0a\x01a", "", dedup.MissingUnparsable},
		"\x00\x00":     {"\x0a\x01a", "", dedup.MissingUnparsable},
		"\x02\x08":     {"\x0a\x01a", "", dedup.MissingUnusableSchema},
	} {
		r := &kgo.Record{Value: []byte(c.body), Headers: headers("__value_schema_id",
			"\x01"+string(g[:])+indexes)}
		if id, missing := extract(t, e, r); id != c.want || missing != c.missing {
			t.Errorf("%x: %q, %v, want %q, %v", indexes, id, missing, c.want, c.missing)
		}
	}
}

// Where records could be read in two ways, the configuration decides, and nothing is guessed.
func TestTheConfigurationDecidesHowARecordNamesItsSchema(t *testing.T) {
	one, two := guid(1), guid(2)
	id := func(g [16]byte) string { return "\x01" + string(g[:]) }
	number := func(n uint64) string { return string(binary.BigEndian.AppendUint64(nil, n)) }
	bare := "\x02a"
	content := messageid.Framing{Numbers: messageid.RefContentID}
	for _, c := range []struct {
		name    string
		framing messageid.Framing
		value   string
		headers []string
		want    dedup.ID
		missing dedup.MissingReason
	}{
		{"a header before a frame", messageid.Framing{}, "\x00\x00\x00\x00\x01\x02a",
			[]string{"__value_schema_id", id(one)}, "", dedup.MissingEmpty},
		{"the value only", messageid.Framing{In: messageid.InValue}, "\x00\x00\x00\x00\x01\x02a",
			[]string{"__value_schema_id", id(two)}, "a", 0},
		{"the header only, and there is none", messageid.Framing{In: messageid.InHeader},
			"\x00\x00\x00\x00\x01\x02a", nil, "", dedup.MissingUnframed},
		{"the header only", messageid.Framing{In: messageid.InHeader}, bare,
			[]string{"__value_schema_id", id(one)}, "a", 0},
		{"the key's header", messageid.Framing{}, bare, []string{"__key_schema_id", id(one)}, "",
			dedup.MissingUnframed},
		{"a header twice", messageid.Framing{}, bare, []string{"__value_schema_id", id(one),
			"__value_schema_id", id(one)}, "a", 0},
		{"two headers that differ", messageid.Framing{}, bare, []string{
			"__value_schema_id", id(one), "__value_schema_id", id(two)}, "", dedup.MissingUnframed},
		{"two serializers", messageid.Framing{}, bare, []string{"__value_schema_id", id(one),
			"apicurio.value.contentId", number(101)}, "", dedup.MissingUnframed},
		{"a header of something else", messageid.Framing{}, bare,
			[]string{"__value_schema_id", "\x02abcdefghijklmnop"}, "", dedup.MissingUnframed},
		{"half a header", messageid.Framing{}, bare, []string{"__value_schema_id", "\x01abc"}, "",
			dedup.MissingUnframed},
		{"an unknown GUID", messageid.Framing{}, bare, []string{"__value_schema_id", id(guid(77))},
			"", dedup.MissingUnknownSchema},
		{"both of Apicurio's numbers", messageid.Framing{}, bare, []string{
			"apicurio.value.globalId", number(1<<40 + 1),
			"apicurio.value.contentId", number(101)}, "a", 0},
		{"JSON of Apicurio's", messageid.Framing{}, `{"id":"a"}`, []string{
			"apicurio.value.contentId", number(101),
			"apicurio.value.encoding", "JSON"}, "", dedup.MissingUnparsable},
		{"contentId in four bytes", content, "\x00\x00\x00\x00\x65\x02a", nil, "a", 0},
		{"globalId in four bytes", messageid.Framing{Numbers: messageid.RefGlobalID},
			"\x00\x00\x00\x00\x07\x02a", nil, "a", 0},
		{"globalId in eight bytes", messageid.Framing{Numbers: messageid.RefGlobalID, Long: true},
			"\x00" + number(1<<40+1) + "\x02a", nil, "a", 0},
		{"eight bytes, and there are fewer", messageid.Framing{Long: true},
			"\x00\x00\x00\x00\x01\x02a", nil, "", dedup.MissingUnframed},
		{"a number that is not there", content, "\x00\x00\x00\x00\x01\x02a", nil, "",
			dedup.MissingUnknownSchema},
	} {
		e := mustExtractor(t, messageid.Source{From: "avro", Path: "id",
			Registry: libraryOf(c.framing)})
		r := &kgo.Record{Value: []byte(c.value), Headers: headers(c.headers...)}
		if id, missing := extract(t, e, r); id != c.want || missing != c.missing {
			t.Errorf("%s: %q, %v, want %q, %v", c.name, id, missing, c.want, c.missing)
		}
	}
}

// A registry of the earlier interface is asked by numbers of four bytes, and by nothing else.
func TestARegistryThatKnowsOnlyNumbersIsAskedForNothingElse(t *testing.T) {
	e := mustExtractor(t, messageid.Source{From: "avro", Path: "id", Registry: shelved()})
	for name, write := range framings {
		known := name == "before the value" || name == "a number in a header"
		if _, missing := extract(t, e, write(1, "value", "\x02a")); (missing == 0) != known {
			t.Errorf("%s: %v", name, missing)
		}
	}
}

// What Confluent's client for Python 2.16.1 wrote with header_schema_id_serializer, and without.
func TestSchemasInHeadersOfConfluentsSerializersAreFound(t *testing.T) {
	l := library{shelf: &shelf{schemas: map[uint32]messageid.Schema{}},
		refs: make(map[messageid.Ref]messageid.Schema)}
	const order = `{"type":"record","name":"Order","fields":[{"name":"note","type":"string"},` +
		`{"name":"id","type":"string"}]}`
	l.schemas[1] = messageid.Schema{Type: "avro", Text: order}
	named := messageid.GUIDRef([16]byte{0x22, 0x6a, 0xbe, 0x10, 0x61, 0x0e, 0x4e, 0x82, 0xaf, 0xd7,
		0x49, 0xda, 0x3e, 0x52, 0x2a, 0x0e})
	if named.String() != "226abe10-610e-4e82-afd7-49da3e522a0e" {
		t.Errorf("the GUID is written %s", named)
	}
	l.refs[named] = l.schemas[1]
	e := mustExtractor(t, messageid.Source{From: "avro", Path: "id", Registry: l})
	guid := named.GUID()
	for _, r := range []*kgo.Record{
		{Value: []byte("\x00\x00\x00\x00\x01\x02n\x06a-1")},
		{Value: []byte("\x02n\x06a-1"), Headers: headers("__value_schema_id",
			"\x01"+string(guid[:]))},
	} {
		if id, missing := extract(t, e, r); id != "a-1" || missing != 0 {
			t.Errorf("%q: %q, %v", r.Value, id, missing)
		}
	}
}

// BenchmarkFraming compares the two ways in which Confluent's serializers name a schema.
func BenchmarkFraming(b *testing.B) {
	var body []byte // of 1 KiB: twelve texts and as many numbers, and then the ID
	text := `{"type":"record","name":"O","fields":[`
	for i := range 12 {
		body = append(binary.AppendVarint(body, 76), fmt.Sprintf("%076d", i)...)
		body = binary.AppendVarint(body, 1_700_000_000_000)
		text += fmt.Sprintf(`{"name":"t%d","type":"string"},{"name":"n%[1]d","type":"long"},`, i)
	}
	schema := messageid.Schema{Type: "avro", Text: text + `{"name":"id","type":"string"}]}`}
	l := libraryOf(messageid.Framing{})
	l.schemas[1], l.refs[messageid.GUIDRef(guid(1))] = schema, schema
	for _, name := range []string{"before the value", "a GUID"} {
		r := framings[name](1, "value", string(body)+"\x06a-1")
		e := mustExtractor(b, messageid.Source{From: "avro", Path: "id", Registry: l})
		if err := e.Resolve(b.Context(), []*kgo.Record{r}); err != nil {
			b.Fatal(err)
		}
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, missing := e.Extract(r); missing != dedup.NotMissing {
					b.Fatal(missing)
				}
			}
		})
	}
}
