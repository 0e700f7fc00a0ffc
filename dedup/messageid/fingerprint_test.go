package messageid_test

import (
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/dedup/messageid"
)

func TestFingerprints(t *testing.T) {
	f := messageid.NewFingerprinter()
	base := &kgo.Record{Key: []byte("ab"), Value: []byte("cd"),
		Headers: []kgo.RecordHeader{{Key: "attempt", Value: []byte("1")}}}
	want := f.Of(base)
	retried := *base
	retried.Headers, retried.Timestamp, retried.Partition = nil, time.Now(), 3
	if f.Of(&retried) != want {
		t.Error("headers, time or place changed the fingerprint")
	}
	for name, other := range map[string]*kgo.Record{
		"a byte moved from the value to the key": {Key: []byte("abc"), Value: []byte("d")},
		"null key":                               {Value: []byte("abcd")},
		"tombstone":                              {Key: []byte("ab")},
		"empty value":                            {Key: []byte("ab"), Value: []byte{}},
	} {
		if got := f.Of(other); got == want {
			t.Errorf("%s: the same fingerprint", name)
		}
	}
	if f.Of(&kgo.Record{Key: []byte("ab")}) == f.Of(&kgo.Record{Key: []byte("ab"),
		Value: []byte{}}) {
		t.Error("a tombstone has the fingerprint of an empty value")
	}
}
