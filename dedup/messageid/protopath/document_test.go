package protopath_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/kdedup/kdedup/dedup/messageid/protopath"
)

func documents(t testing.TB, schema string) *protopath.Documents {
	t.Helper()
	d, err := protopath.CompileDocuments(protopath.Source{Text: schema})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// compact takes the spaces away that the library puts at places of its choice.
func compact(t *testing.T, doc []byte) string {
	t.Helper()
	var to bytes.Buffer
	if err := json.Compact(&to, doc); err != nil {
		t.Fatalf("%s: %v", doc, err)
	}
	return to.String()
}

func TestAMessageIsADocument(t *testing.T) {
	d := documents(t, order)
	const text = `{"note":"n","state":"PAID","tags":["a","b"],"by_name":{"x":{"id":"i"}},` +
		`"given":"0","z32":-3,"left":"l","at":"2026-11-27T00:00:00Z","order_id":"o"}`
	message := encode(t, text)
	// another writer leaves defaults out and writes fields in another order
	swapped := protowire.AppendTag(nil, 20, protowire.BytesType)
	swapped = append(protowire.AppendString(swapped, "o"), message...)
	for _, m := range [][]byte{message, swapped, append([]byte{0x48, 0}, message...)} { // plain: 0
		doc, ok := d.AppendJSON([]byte(" "), []int{0}, m)
		if got := compact(t, doc); !ok || got != text {
			t.Errorf("got  %s\nwant %s", got, text)
		}
	}
	if doc, ok := d.AppendJSON(nil, []int{1, 0}, []byte{0x38, 5}); !ok ||
		compact(t, doc) != `{"id":5}` {
		t.Errorf("a message within another: %s", doc)
	}
}

func TestWhatIsNoMessageIsNoDocument(t *testing.T) {
	d := documents(t, order)
	message := encode(t, `{"refs":[{"next":{"id":"i"}}],"byName":{"x":{"id":"i"}}}`)
	unknown := protowire.AppendVarint(protowire.AppendTag(nil, 99, protowire.VarintType), 1)
	within := func(field protowire.Number, body []byte) []byte {
		return protowire.AppendBytes(protowire.AppendTag(nil, field, protowire.BytesType), body)
	}
	badTime := []byte{8, 1, 16, 0xff, 0xff, 0xff, 0xff, 0x7f}
	entry := append(within(1, []byte("x")), within(2, unknown)...)
	for name, c := range map[string]struct {
		indexes []int
		message []byte
	}{
		"a field that the schema does not have":  {[]int{0}, append(unknown, message...)},
		"the same within a message":              {[]int{0}, within(18, within(2, unknown))},
		"the same in a map":                      {[]int{0}, within(6, entry)},
		"bytes that are cut":                     {[]int{0}, message[:len(message)-1]},
		"no such type":                           {[]int{2}, nil},
		"no such type within a type":             {[]int{0, 9}, nil},
		"a negative index":                       {[]int{-1}, nil},
		"no index":                               {nil, nil},
		"a text that is not UTF-8":               {[]int{0}, within(1, []byte{0xff})},
		"a time that there is not":               {[]int{0}, within(19, badTime)},
		"one above the length that is read":      {[]int{0}, within(1, make([]byte, 1<<20))},
		"messages that nest deeper than is read": {[]int{0}, nested(18, 2, 200)},
	} {
		if doc, ok := d.AppendJSON(nil, c.indexes, c.message); ok || len(doc) > 0 {
			t.Errorf("%s: %s", name, doc)
		}
	}
	if _, err := protopath.CompileDocuments(protopath.Source{Text: "message"}); err == nil {
		t.Error("what is no schema is accepted")
	}
}

// nested is a message in field first with messages in field then, so deep.
func nested(first, then protowire.Number, deep int) (m []byte) {
	for range deep {
		m = protowire.AppendBytes(protowire.AppendTag(nil, then, protowire.BytesType), m)
	}
	return protowire.AppendBytes(protowire.AppendTag(nil, first, protowire.BytesType), m)
}

func TestHostileMessagesCostLittle(t *testing.T) {
	d := documents(t, order)
	begin := time.Now()
	d.AppendJSON(nil, []int{0}, bytes.Repeat([]byte{0x92, 1, 0}, 1<<20/3)) // refs: {}
	if took := time.Since(begin); took > 10*time.Second {
		t.Errorf("%v", took)
	}
}

// FuzzDocument compares with the library: two messages that it finds equal say the same.
func FuzzDocument(f *testing.F) {
	f.Add(encode(f, `{"note":"n","refs":[{"id":"a"},{"next":{}}],"byNumber":{"7":"8"}}`))
	d, is := documents(f, order), message(f)
	f.Fuzz(func(t *testing.T, message []byte) {
		doc, ok := d.AppendJSON(nil, []int{0}, message)
		if !ok {
			return
		}
		m := dynamicpb.NewMessage(is)
		if err := proto.Unmarshal(message, m); err != nil {
			t.Fatalf("%x is a document, %s, and no message", message, doc)
		}
		again, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		other, ok := d.AppendJSON(nil, []int{0}, again)
		if !ok || !strings.EqualFold(compact(t, doc), compact(t, other)) {
			t.Fatalf("%s, and written again %s", doc, other)
		}
	})
}

func BenchmarkDocument(b *testing.B) {
	message := encode(b, `{"note":"`+strings.Repeat("n", 800)+
		`","state":"PAID","tags":["a","b"],"byName":{"x":{"id":"i"}},"orderId":"o"}`)
	d := documents(b, order)
	b.SetBytes(int64(len(message)))
	b.ReportAllocs()
	for b.Loop() {
		if _, ok := d.AppendJSON(nil, []int{0}, message); !ok {
			b.Fatal("no document")
		}
	}
}
