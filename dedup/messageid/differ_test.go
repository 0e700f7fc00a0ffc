package messageid

import (
	"context"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
)

func TestWhatAConflictDiffersInIsNamed(t *testing.T) {
	reader, err := NewReader(FormatJSON, nil)
	if err != nil {
		t.Fatal(err)
	}
	record := func(key, value string) *kgo.Record {
		return &kgo.Record{Key: []byte(key), Value: []byte(value)}
	}
	whole := record("k", `{"id":"1","total":5,"items":[{"price":1}],"at":"x"}`)
	for name, c := range map[string]struct {
		owner, copied *kgo.Record
		want          string
	}{
		"a field": {whole, record("k", `{"id":"1","total":6,"items":[{"price":1}],"at":"x"}`),
			"the value in total"},
		"a field that one lacks": {whole, record("k", `{"id":"1","total":5,"items":[{"price":1}]}`),
			"the value in at"},
		"many fields": {record("k", `{"a":1,"b":1,"c":1,"d":1,"e":1}`),
			record("k", `{"a":2,"b":2,"c":2,"d":2,"e":2}`), "the value in a, b, c and 2 more"},
		"the key alone": {whole, record("l", string(whole.Value)), "the key alone"},
		"no key":        {whole, &kgo.Record{Value: whole.Value}, "the key alone"},
		"both": {whole, record("l", `{"id":"1","total":6,"items":[{"price":1}],"at":"x"}`),
			"the key, and the value in total"},
		"the order of the fields": {record("k", `{"a":1,"b":2}`), record("k", `{"b":2, "a":1}`),
			"how the value is written"},
		"a field without a name": {record("k", `{"":1}`), record("k", `{"":2}`),
			"the value, from byte 4 on (6 bytes, the owner has 6)"},
		"text": {record("k", "state=new"), record("k", "state=old!"),
			"the value, from byte 6 on (10 bytes, the owner has 9)"},
		"a document that was cut off": {record("k", `{"id":"1","tot`), whole,
			"the value, from byte 14 on (51 bytes, the owner has 14)"},
		"a tombstone": {whole, &kgo.Record{Key: []byte("k")},
			"the value, which one of them does not have"},
		"nothing": {whole, whole,
			"neither the key nor the value: the owner claimed by another rule of what counts"},
	} {
		if got, err := reader.Differ(context.Background(), c.owner, c.copied); err != nil ||
			got != c.want {
			t.Errorf("%s: %q, %v; want %q", name, got, err, c.want)
		}
	}
}
