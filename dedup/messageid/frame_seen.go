package messageid

import (
	"strings"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/dedup"
)

// Frames reads what records say of the schemas of their values, or of their keys.
type Frames struct{ schemas }

// NewFrames reads what a registry's framing says of a PartValue or a PartKey.
func NewFrames(f Framing, part string) *Frames {
	return &Frames{schemas{framing: f, ofKey: part == PartKey, news: new(news)}}
}

// Of is the schema that a record names, and the part without what stands before it. It is false
// for a record that names none, and for a part that cannot be unpacked.
func (f *Frames) Of(r *kgo.Record) (ref Ref, body []byte, ok bool) {
	var seen frame
	if f.open(r, &seen) != dedup.NotMissing || !seen.unpack() {
		return ref, nil, false
	}
	return seen.ref, seen.body, true
}

// IsSingleObject reports whether a value begins as Avro's single-object encoding does.
func IsSingleObject(value []byte) bool {
	return len(value) >= singleObjectHeader && string(value[:2]) == singleObject
}

// IsAzure reports whether a header names a schema of Azure's registry.
func IsAzure(r *kgo.Record) bool {
	for _, h := range r.Headers {
		if h.Key == "content-type" && strings.HasPrefix(string(h.Value), azureContent) {
			return true
		}
	}
	return false
}
