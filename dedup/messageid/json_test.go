package messageid_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/dedup/messageid"
)

func TestJSONField(t *testing.T) {
	cases := []struct {
		name, path, doc string
		want            string
		missing         dedup.MissingReason
	}{
		{"string", "id", `{"id":"a"}`, "a", 0},
		{"nested", "order.id", `{"id":1,"order":{"x":{"id":2},"id":"b"}}`, "b", 0},
		{"array index", "items.1.id", `{"items":[{"id":1},{"id":2}]}`, "2", 0},
		{"an index is also a name", "1", `{"1":"x"}`, "x", 0},
		{"dot in a name", `a\.b`, `{"a":{"b":1},"a.b":2}`, "2", 0},
		{"backslash in a name", `a\\b`, `{"a\\b":2}`, "2", 0},
		{"numbers stay as written", "id", `{"id":12345678901234567890.10}`,
			"12345678901234567890.10", 0},
		{"exponents stay as written", "id", `{"id":-1E+2}`, "-1E+2", 0},
		{"escapes are resolved", "id", `{"id":"\u0061\n\ud83d\ude00"}`, "a\n😀", 0},
		{"escaped names match", "id", `{"\u0069d":"a"}`, "a", 0},
		{"half a surrogate pair stays what it is", "id", `{"id":"\ud83d"}`, "\xed\xa0\xbd", 0},
		{"the last of equal names counts", "id", `{"id":1,"id":2}`, "2", 0},
		{"null", "id", `{"id":null}`, "", dedup.MissingNull},
		{"empty string", "id", `{"id":""}`, "", dedup.MissingEmpty},
		{"absent", "id", `{"ID":1}`, "", dedup.MissingAbsent},
		{"absent below a scalar", "id.x", `{"id":1}`, "", dedup.MissingAbsent},
		{"object", "id", `{"id":{}}`, "", dedup.MissingUnsupportedType},
		{"array", "id", `{"id":[1]}`, "", dedup.MissingUnsupportedType},
		{"boolean", "id", `{"id":true}`, "", dedup.MissingUnsupportedType},
		{"rubbish behind the document", "id", `{"id":1}}`, "1", 0},
		{"rubbish behind the field", "id", `{"id":1,"x":oops}`, "1", 0},
		{"trailing comma", "id", `{"id":1,}`, "1", 0},
		{"rubbish behind a nested field", "a.id", `{"a":{"id":1,!}}`, "1", 0},
		{"rubbish behind the object of a field", "a.id", `{"a":{"id":1}!`, "1", 0},
		{"rubbish behind an element", "1", `[1,2,!]`, "2", 0},
		{"rubbish before the field", "id", `{"x":oops,"id":1}`, "", dedup.MissingUnparsable},
		{"rubbish and no field", "id", `{"x":1}}`, "", dedup.MissingUnparsable},
		{"rubbish right behind the field", "id", `{"id":1!}`, "", dedup.MissingUnparsable},
		{"rubbish right behind an element", "0", `[1!]`, "", dedup.MissingUnparsable},
		{"rubbish in the second of equal names", "id", `{"id":1,"id":2!}`, "",
			dedup.MissingUnparsable},
		{"too deep behind the field", "id", `{"id":1,"x":` + strings.Repeat("[", 10001), "1", 0},
		{"not a number", "id", `{"x":NaN,"y":[Infinity,-Infinity],"id":1}`, "1", 0},
		{"an ID that is not a number", "id", `{"id":NaN}`, "", dedup.MissingUnsupportedType},
		{"an infinite ID", "id", `{"id":Infinity}`, "", dedup.MissingUnsupportedType},
		{"a negative infinite ID", "id", `{"id":-Infinity}`, "", dedup.MissingUnsupportedType},
		{"not quite Infinity", "id", `{"x":-Inf,"id":1}`, "", dedup.MissingUnparsable},
		{"cut off", "id", `{"id":1`, "", dedup.MissingUnparsable},
		{"cut off behind a string", "id", `{"id":"1"`, "", dedup.MissingUnparsable},
		{"index in brackets", "items[1].id", `{"items":[{"id":1},{"id":2}]}`, "2", 0},
		{"index at the top", "[1]", `[1,2]`, "2", 0},
		{"byte order mark", "id", "\xef\xbb\xbf{\"id\":1}", "1", 0},
		{"half a byte order mark", "id", "\xef\xbb{\"id\":1}", "", dedup.MissingUnparsable},
		{"schema ID", "id", "\x00\x00\x00\x01\x02{\"id\":1}", "1", 0},
		{"schema ID and byte order mark", "id", "\x00{{{{\xef\xbb\xbf{\"id\":1}", "1", 0},
		{"schema ID and nothing", "id", "\x00\x00\x00\x01\x02", "", dedup.MissingUnparsable},
		{"schema ID before what is not JSON", "id", "\x00\x00\x00\x01\x02\x06abc", "",
			dedup.MissingUnparsable},
		{"half a schema ID", "id", "\x00\x00{\"id\":1}", "", dedup.MissingUnparsable},
		{"document in a string", "payload|json.id", `{"payload":"{\"id\":\"a\"}"}`, "a", 0},
		{"escapes of both documents", "p|json.id", `{"p":"{\"id\":\"\\u0061\\n\"}"}`, "a\n", 0},
		{"document in the place of a string", "payload|json.id", `{"payload":{"id":"a"}}`, "a", 0},
		{"documents in documents", "a|json.b|json[0]", `{"a":"{\"b\":\"[7]\"}"}`, "7", 0},
		{"rubbish in a document in a string", "p|json.id", `{"p":"oops"}`, "",
			dedup.MissingUnparsable},
		{"no document in a string", "p|json.id", `{"p":""}`, "", dedup.MissingEmpty},
		{"null in the place of a document", "p|json.id", `{"p":null}`, "", dedup.MissingNull},
		{"a number in the place of a document", "p|json.id", `{"p":1}`, "",
			dedup.MissingUnsupportedType},
		{"no string for a document", "p|json.id", `{}`, "", dedup.MissingAbsent},
		{"leading zero", "id", `{"id":01}`, "", dedup.MissingUnparsable},
		{"control character in a string", "id", "{\"id\":\"a\nb\"}", "", dedup.MissingUnparsable},
		{"too deep", "id", strings.Repeat("[", 10001) + strings.Repeat("]", 10001), "",
			dedup.MissingUnparsable},
		{"empty value", "id", ``, "", dedup.MissingEmpty},
		{"white space everywhere", "a.b", " {\t\"a\" :\r\n{ \"b\" : \"x\" } } ", "x", 0},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			e := mustExtractor(t, messageid.Source{From: "json", Path: c.path})
			id, missing := e.Extract(&kgo.Record{Value: []byte(c.doc)})
			if string(id) != c.want || missing != c.missing {
				t.Errorf("got %q, %v; want %q, %v", id, missing, c.want, c.missing)
			}
		})
	}
	t.Run("of the key", func(t *testing.T) {
		e := mustExtractor(t, messageid.Source{From: "json", Path: "id", Part: "key"})
		id, missing := e.Extract(&kgo.Record{Key: []byte(`{"id":"a"}`)})
		if id != "a" || missing != dedup.NotMissing {
			t.Errorf("got %q, %v", id, missing)
		}
		if _, missing := e.Extract(&kgo.Record{Value: []byte(`{"id":"a"}`)}); missing !=
			dedup.MissingNull {
			t.Errorf("got %v", missing)
		}
	})
	t.Run("tombstone", func(t *testing.T) {
		e := mustExtractor(t, messageid.Source{From: "json", Path: "id"})
		if _, missing := e.Extract(&kgo.Record{}); missing != dedup.MissingNull {
			t.Errorf("got %v", missing)
		}
	})
}

// FuzzJSONField compares with encoding/json: in a document that is valid a string or number is
// found exactly where it finds one, and what stands behind or before such a document changes
// nothing.
func FuzzJSONField(f *testing.F) {
	for _, doc := range []string{
		`{"id":"a"}`, `{"id":1.50}`, `{"id":{"id":2}}`, `[{"id":3}]`, `{"id":"\u00e9\ud800"}`,
		`{"i\u0064":"x","id":null}`, `{"id":tru}`, "{\"id\":\"\xff\"}", `{"id":-0e1}`,
		` {"id" : [ ] }`, `{"id":1,"x":NaN}`, `{"id":1}}`, "\x00\x00\x00\x00\x01{\"id\":1}",
	} {
		f.Add([]byte(doc), []byte("}"))
	}
	e := mustExtractor(f, messageid.Source{From: "json", Path: "id"})
	extract := func(parts ...[]byte) (dedup.ID, dedup.MissingReason) {
		return e.Extract(&kgo.Record{Value: bytes.Join(parts, nil)})
	}
	f.Fuzz(func(t *testing.T, doc, rubbish []byte) {
		id, missing := extract(doc)
		if again, reason := extract(doc); again != id || reason != missing {
			t.Fatalf("%q, %v and then %q, %v", id, missing, again, reason)
		}
		if !json.Valid(doc) {
			return
		}
		if missing == dedup.MissingUnparsable {
			t.Fatal("a valid document is unparsable")
		}
		frame := []byte("\x00\x01\x02\x03\x04\xef\xbb\xbf")
		if framed, reason := extract(frame, doc); framed != id || reason != missing {
			t.Fatalf("behind a schema ID: %q, %v", framed, reason)
		}
		if missing != dedup.NotMissing {
			return
		}
		if longer, reason := extract(doc, rubbish); longer != id || reason != missing {
			t.Fatalf("with rubbish behind it: %q, %v", longer, reason)
		}
		var object map[string]json.RawMessage
		if json.Unmarshal(doc, &object) != nil {
			return
		}
		// encoding/json puts U+FFFD in place of what is not UTF-8, in names as well.
		if raw := bytes.TrimSpace(object["id"]); len(raw) > 0 && raw[0] != '"' &&
			len(id) <= messageid.MaxBytes-1 && string(raw) != string(id) {
			t.Fatalf("got %q, want %s", id, raw)
		}
	})
}

// FuzzDocumentInAString: a document is the same one in a string of another one.
func FuzzDocumentInAString(f *testing.F) {
	for _, doc := range []string{`{"id":"a"}`, `{"id":1.50}`, `{"id":"\u00e9\ud83d\ude00\n"}`,
		`[{"id":3}]`, `{"id":null}`, `{"id":1,"x":NaN}`, "", "\ufeff{}"} {
		f.Add(doc)
	}
	outer := mustExtractor(f, messageid.Source{From: "json", Path: "id"})
	inner := mustExtractor(f, messageid.Source{From: "json", Path: "p|json.id"})
	f.Fuzz(func(t *testing.T, doc string) {
		if strings.HasPrefix(doc, "\x00") { // a schema ID stands before a record only
			return
		}
		packed, err := json.Marshal(map[string]string{"p": doc})
		if err != nil || !utf8.ValidString(doc) {
			return
		}
		want, reason := outer.Extract(&kgo.Record{Value: []byte(doc)})
		got, missing := inner.Extract(&kgo.Record{Value: packed})
		if got != want || missing != reason {
			t.Fatalf("got %q, %v; want %q, %v", got, missing, want, reason)
		}
	})
}
