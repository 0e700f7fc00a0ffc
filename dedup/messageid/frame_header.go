package messageid

import (
	"bytes"
	"encoding/binary"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/dedup"
)

// headerNames are those of the headers in which serializers name the schema of a part.
type headerNames struct{ schemaID, contentID, globalID, encoding string }

var (
	valueHeaders = headerNames{"__value_schema_id", "apicurio.value.contentId",
		"apicurio.value.globalId", "apicurio.value.encoding"}
	keyHeaders = headerNames{"__key_schema_id", "apicurio.key.contentId",
		"apicurio.key.globalId", "apicurio.key.encoding"}
)

// inHeaders reads a frame of which a header has the name of the schema; then all of the part is the
// body. A header that cannot be read, or two that differ, are no frame: what the body is, is not
// known then.
func (s *schemas) inHeaders(r *kgo.Record, f *frame) (named bool, missing dedup.MissingReason) {
	names := &valueHeaders
	if s.ofKey {
		names = &keyHeaders
	}
	for i := range r.Headers {
		h := &r.Headers[i]
		if len(h.Key) < shortestName {
			continue
		}
		switch h.Key {
		case names.schemaID, names.contentID, names.globalID:
			ref, indexes, ok := refInHeader(h, names)
			if !ok || named && (ref != f.ref || !bytes.Equal(indexes, f.indexes)) &&
				!bothOfApicurio(ref, f.ref) {
				s.news.tell("the header " + h.Key + " of records cannot be read, or another one " +
					"names another schema: schema_registry.id_in: value leaves them out")
				return false, dedup.MissingUnframed
			}
			f.ref, f.indexes, named = ref, indexes, true
		case names.encoding:
			if string(h.Value) == "JSON" {
				s.news.tell("Apicurio's serializers write records as JSON (apicurio.avro.encoding)" +
					": name their fields by from: json")
				return false, dedup.MissingUnparsable
			}
		}
	}
	return named, dedup.NotMissing
}

// shortestName is the length of the shortest name.
const shortestName = len("__key_schema_id")

// bothOfApicurio reports whether a record has both of its numbers, of which either will do.
func bothOfApicurio(a, b Ref) bool {
	return a.Kind == RefContentID && b.Kind == RefGlobalID ||
		a.Kind == RefGlobalID && b.Kind == RefContentID
}

// refInHeader reads a 1 and a GUID, or a 0 and a number, and behind them which Protobuf message it
// is; or eight bytes of one of Apicurio's numbers.
func refInHeader(h *kgo.RecordHeader, names *headerNames) (ref Ref, indexes []byte, ok bool) {
	value := h.Value
	switch {
	case h.Key == names.schemaID && len(value) >= 17 && value[0] == 1:
		return GUIDRef([16]byte(value[1:17])), value[17:], true
	case h.Key == names.schemaID && len(value) >= schemaFrame && value[0] == 0:
		return NumberRef(RefID, uint64(binary.BigEndian.Uint32(value[1:]))), value[schemaFrame:],
			true
	case h.Key == names.contentID && len(value) == 8:
		return NumberRef(RefContentID, binary.BigEndian.Uint64(value)), nil, true
	case h.Key == names.globalID && len(value) == 8:
		return NumberRef(RefGlobalID, binary.BigEndian.Uint64(value)), nil, true
	}
	return ref, nil, false
}

// SchemaHeader is the header in which a serializer has named the schema of a record's value, or of
// its key; empty: there is none.
func SchemaHeader(r *kgo.Record, ofKey bool) string {
	names := &valueHeaders
	if ofKey {
		names = &keyHeaders
	}
	for i := range r.Headers {
		switch name := r.Headers[i].Key; name {
		case names.schemaID, names.contentID, names.globalID:
			return name
		}
	}
	return ""
}
