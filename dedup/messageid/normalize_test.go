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

func TestSpellings(t *testing.T) {
	const uuid = "0a12c11d-71fa-4a2d-a02e-350ec8fc9e34"
	for _, c := range []struct{ steps, from, want string }{
		{"trim", " \t\n\v\f\ra b\r\n", "a b"},
		{"trim", "\u00a0a", "\u00a0a"},
		{"trim", " \n", ""},
		{"unquote", `"a"`, "a"},
		{"unquote", `"\u0061\"\n"`, "a\"\n"},
		{"unquote", `"a`, `"a`},
		{"unquote", `a"`, `a"`},
		{"unquote", `"`, `"`},
		{"unquote", `""`, ""},
		{"unquote", `"a" "b"`, `"a" "b"`},
		{"unquote", `"\x"`, `"\x"`},
		{"unquote", `'a'`, `'a'`},
		{"unquote", `"\"a\""`, `"a"`},
		{"unquote unquote", `"\"a\""`, "a"},
		{"lower", "aBÉZ-[@", "abÉz-[@"},
		{"lower", "\xffA", "\xffa"},
		{"uuid", uuid, uuid},
		{"uuid", strings.ToUpper(uuid), uuid},
		{"uuid", strings.ReplaceAll(uuid, "-", ""), uuid},
		{"uuid", "{" + strings.ToUpper(uuid) + "}", uuid},
		{"uuid", "(" + uuid + ")", uuid},
		{"uuid", "{" + strings.ReplaceAll(uuid, "-", "") + "}", uuid},
		{"uuid", "URN:uuid:" + uuid, uuid},
		{"uuid", "{" + uuid, "{" + uuid},
		{"uuid", "{" + uuid + ")", "{" + uuid + ")"},
		{"uuid", uuid + "0", uuid + "0"},
		{"uuid", "0a12c11d-71fa-4a2d-a02e-350ec8fc9e3x", "0a12c11d-71fa-4a2d-a02e-350ec8fc9e3x"},
		{"uuid", "0a12c11d71-fa-4a2d-a02e-350ec8fc9e34", "0a12c11d71-fa-4a2d-a02e-350ec8fc9e34"},
		{"uuid", "ORDER-1", "ORDER-1"},
		{"uuid", " " + uuid, " " + uuid},
		{"trim unquote lower uuid", " \"{0A12C11D-71FA-4A2D-A02E-350EC8FC9E34}\" ", uuid},
		{"lower trim", " A", "a"},
	} {
		e := mustExtractor(t, messageid.Source{From: "key", Normalize: strings.Fields(c.steps)})
		record := &kgo.Record{Key: []byte(c.from)}
		id, missing := e.Extract(record)
		if string(id) != c.want || (missing == dedup.MissingEmpty) != (c.want == "") {
			t.Errorf("%s: %q became %q, %v, want %q", c.steps, c.from, id, missing, c.want)
		}
		if string(record.Key) != c.from {
			t.Errorf("%s changed the record: %q", c.steps, record.Key)
		}
	}
}

// FuzzSpellings: an ID in its one spelling keeps it, and the record stays what it is.
func FuzzSpellings(f *testing.F) {
	for _, key := range []string{"", " a ", `"A"`, "{0A12C11D-71FA-4A2D-A02E-350EC8FC9E34}",
		"urn:uuid:0a12c11d-71fa-4a2d-a02e-350ec8fc9e34", "0a12c11d71fa4a2da02e350ec8fc9e34"} {
		f.Add([]byte(key))
	}
	steps := []string{"trim", "lower", "uuid"}
	e := mustExtractor(f, messageid.Source{From: "key", Normalize: steps})
	unquote := mustExtractor(f, messageid.Source{From: "key", Normalize: []string{"unquote"}})
	f.Fuzz(func(t *testing.T, key []byte) {
		before := bytes.Clone(key)
		id, missing := e.Extract(&kgo.Record{Key: key})
		if !bytes.Equal(before, key) {
			t.Fatalf("%q became %q", before, key)
		}
		if missing == dedup.NotMissing && len(id) < messageid.MaxBytes {
			again, reason := e.Extract(&kgo.Record{Key: []byte(id)})
			if again != id || reason != missing {
				t.Fatalf("%q became %q, and then %q, %v", key, id, again, reason)
			}
		}
		quoted, err := json.Marshal(string(key))
		if err != nil || !utf8.Valid(key) || len(key) == 0 || len(key) > messageid.MaxBytes {
			return
		}
		if got, _ := unquote.Extract(&kgo.Record{Key: quoted}); string(got) != string(key) {
			t.Fatalf("%s became %q", quoted, got)
		}
	})
}
