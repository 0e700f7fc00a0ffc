package messageid_test

import (
	"encoding/json"
	"math/rand/v2"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/dedup/messageid"
)

// The first copy was cut off on its way; the producer sends the order again.
func TestOnlyWholeDocumentsHaveAnIDWhereThatIsDemanded(t *testing.T) {
	field := messageid.Source{From: "json", Path: "order_id"}
	header := messageid.Source{From: "header", Name: "id"}
	cases := []struct {
		name  string
		value string
		whole bool
	}{
		{"a document", `{"order_id":"x-1","total":5}`, true},
		{"white space around it", " {\"order_id\":\"x-1\"}\r\n", true},
		{"a mark in front", "\xEF\xBB\xBF" + `{"order_id":"x-1"}`, true},
		{"the ID of a schema in front", "\x00\x00\x00\x00\x07" + `{"order_id":"x-1"}`, true},
		{"cut off in a value", `{"order_id":"x-1","total": `, false},
		{"cut off in a string", `{"order_id":"x-1","note":"ab`, false},
		{"without its end", `{"order_id":"x-1"`, false},
		{"something behind it", `{"order_id":"x-1"}{"order_id":"x-2"}`, false},
		{"zeros behind it", `{"order_id":"x-1"}` + "\x00\x00", false},
	}
	for _, c := range cases {
		for _, source := range []messageid.Source{field, header} {
			t.Run(c.name+", ID in "+source.From, func(t *testing.T) {
				e, err := messageid.New(source)
				if err != nil {
					t.Fatal(err)
				}
				demands, err := e.With(messageid.Rules{WholeJSON: true})
				if err != nil {
					t.Fatal(err)
				}
				if demands.String() != e.String() {
					t.Errorf("claims would mean something else: %s, %s", e, demands)
				}
				r := &kgo.Record{Value: []byte(c.value), Headers: headers("id", "x-1")}
				want := dedup.NotMissing
				if !c.whole {
					want = dedup.MissingUnparsable
				}
				if _, missing := demands.Extract(r); missing != want {
					t.Errorf("%v, want %v", missing, want)
				}
				if !messageid.LikeJSON(r.Value) || messageid.WholeJSON(r.Value) != c.whole {
					t.Errorf("like JSON: %t, whole: %t", messageid.LikeJSON(r.Value),
						messageid.WholeJSON(r.Value))
				}
			})
		}
	}
}

func TestATombstoneAndAnotherFormAreNoDocuments(t *testing.T) {
	e, _ := messageid.New(messageid.Source{From: "key"})
	e, err := e.With(messageid.Rules{WholeJSON: true})
	if err != nil {
		t.Fatal(err)
	}
	if _, missing := e.Extract(&kgo.Record{Key: []byte("k")}); missing != dedup.NotMissing {
		t.Errorf("a tombstone: %v", missing)
	}
	for _, text := range []string{"", "plain text", "\x00\x00\x00\x00\x07\x08abc"} {
		r := &kgo.Record{Key: []byte("k"), Value: []byte(text)}
		if _, missing := e.Extract(r); missing != dedup.MissingUnparsable {
			t.Errorf("%q: %v", text, missing)
		}
		if messageid.LikeJSON(r.Value) {
			t.Errorf("%q is like JSON", text)
		}
	}
}

// No beginning of an object is whole, and no other one is either.
func TestNoBeginningOfADocumentIsWhole(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 500 {
		doc, err := json.Marshal(map[string]any{"a": anyValue(random, 4), "b": anyValue(random, 3)})
		if err != nil {
			t.Fatal(err)
		}
		if !messageid.WholeJSON(doc) {
			t.Fatalf("%s is not whole", doc)
		}
		for n := range doc {
			if messageid.WholeJSON(doc[:n]) {
				t.Fatalf("%s is whole", doc[:n])
			}
		}
	}
}

func anyValue(random *rand.Rand, depth int) any {
	if depth == 0 {
		return nil
	}
	switch random.IntN(6) {
	case 0:
		return random.NormFloat64()
	case 1:
		return "text \" \\ é \n"
	case 2:
		return random.IntN(2) == 0
	case 3:
		return []any{anyValue(random, depth-1), anyValue(random, depth-1)}
	case 4:
		return map[string]any{"x": anyValue(random, depth-1)}
	}
	return nil
}
