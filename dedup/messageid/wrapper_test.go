package messageid_test

import (
	"encoding/base64"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
	protobuf "google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/dedup/messageid"
)

// Serializers write a key or a value that is one of Google's wrappers. One that has its default
// value has no bytes, so that behind a header nothing is left of the record.
func TestAWholeWrapperIsAnIDInEveryFraming(t *testing.T) {
	file, err := protobuf.Marshal(
		protodesc.ToFileDescriptorProto(wrapperspb.File_google_protobuf_wrappers_proto))
	if err != nil {
		t.Fatal(err)
	}
	const number = 30
	schema := messageid.Schema{Type: "protobuf", Text: base64.StdEncoding.EncodeToString(file)}
	l := libraryOf(messageid.Framing{})
	l.schemas[number] = schema
	l.refs[messageid.GUIDRef(guid(number))] = schema
	ofGlue := library{&shelf{}, map[messageid.Ref]messageid.Schema{
		messageid.UUIDRef(messageid.RefGlue, guid(number)): schema,
	}, messageid.Framing{Of: messageid.FramingGlue}}
	id := guid(number)
	header := "\x01" + string(id[:])
	for _, c := range []struct {
		message        protobuf.Message
		index, ordinal byte // in the file, and in the order of the names
		want           dedup.ID
		missing        dedup.MissingReason
	}{
		{wrapperspb.String("a-1"), 7, 6, "a-1", dedup.NotMissing},
		{wrapperspb.String(""), 7, 6, "", dedup.MissingEmpty},
		{wrapperspb.Int64(-7), 2, 5, "-7", dedup.NotMissing},
		{wrapperspb.Int64(0), 2, 5, "0", dedup.NotMissing},
		{wrapperspb.Bool(true), 6, 0, "", dedup.MissingUnsupportedType},
	} {
		body, err := protobuf.Marshal(c.message)
		if err != nil {
			t.Fatal(err)
		}
		if body == nil {
			body = []byte{}
		}
		indexes := string([]byte{2, 2 * c.index})
		for _, part := range []string{"value", "key"} {
			for name, r := range map[string]*kgo.Record{
				"before the value": {Value: framed(number, indexes+string(body))},
				"a GUID": {Value: body, Headers: headers("__"+part+"_schema_id",
					header+indexes)},
				"Glue": {Value: append(append([]byte{3, 0}, id[:]...),
					string([]byte{c.ordinal})+string(body)...)},
			} {
				from := messageid.Source{From: "protobuf", Path: "$", Part: part, Registry: l}
				if name == "Glue" {
					from.Registry = ofGlue
				}
				if part == "key" {
					r.Key, r.Value = r.Value, []byte("x")
				}
				got, missing := extract(t, mustExtractor(t, from), r)
				if got != c.want || missing != c.missing {
					t.Errorf("%v, %s of the %s: %q, %v, want %q, %v", c.message, name, part, got,
						missing, c.want, c.missing)
				}
			}
		}
	}
}
