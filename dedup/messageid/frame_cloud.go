package messageid

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"encoding/hex"
	"io"
	"strings"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/dedup"
)

// Of the header of Glue's serializers.
const (
	glueVersion = 3
	gluePlain   = 0
	glueZlib    = 5
	glueHeader  = 18 // with the UUID of the schema's version
)

// mostUnpacked bounds what a record becomes: a megabyte could be a gigabyte.
const mostUnpacked = 64 << 20

// isGlue recognises a 3, the compression (none or zlib) and the UUID.
func isGlue(part []byte) bool {
	return len(part) >= glueHeader && part[0] == glueVersion &&
		(part[1] == gluePlain || part[1] == glueZlib)
}

// IsGlue reports whether a value begins as the serializers of the AWS Glue schema registry write
// it.
func IsGlue(value []byte) bool { return isGlue(value) }

func (f *frame) openGlue(part []byte) dedup.MissingReason {
	switch {
	case len(part) == 0:
		return dedup.MissingEmpty
	case !isGlue(part):
		return dedup.MissingUnframed
	}
	f.ref = UUIDRef(RefGlue, [16]byte(part[2:glueHeader]))
	f.body, f.packed, f.ordinal = part[glueHeader:], part[1] == glueZlib, true
	return dedup.NotMissing
}

// unpack has the body as it was before its compression. It is false for what is no zlib, and for
// what becomes too long.
func (f *frame) unpack() bool {
	if !f.packed {
		return true
	}
	from, err := zlib.NewReader(bytes.NewReader(f.body))
	if err != nil {
		return false
	}
	body, err := io.ReadAll(io.LimitReader(from, mostUnpacked+1))
	if err != nil || len(body) > mostUnpacked {
		return false
	}
	f.body, f.packed = body, false
	return true
}

// ordinalMessage reads which of a schema's messages follows, and the message.
func (f *frame) ordinalMessage(ordinals [][]int) (indexes []int, message []byte, ok bool) {
	number, n := binary.Uvarint(f.body)
	if n <= 0 || number >= uint64(len(ordinals)) {
		return nil, nil, false
	}
	return ordinals[number], f.body[n:], true
}

// azureContent is before the ID of the schema.
const azureContent = "avro/binary+"

// openAzure reads the header of Azure's serializers. They write the same one for a key and, behind
// it, for a value: their deserializers read the last, and so is this the value's.
func (s *schemas) openAzure(r *kgo.Record, part []byte, f *frame) dedup.MissingReason {
	for i := len(r.Headers) - 1; i >= 0 && !s.ofKey; i-- {
		if r.Headers[i].Key != "content-type" {
			continue
		}
		text, is := strings.CutPrefix(string(r.Headers[i].Value), azureContent)
		id, err := hex.DecodeString(text)
		if !is || err != nil || len(id) != 16 {
			return dedup.MissingUnframed
		}
		f.ref, f.body = UUIDRef(RefAzure, [16]byte(id)), part
		return dedup.NotMissing
	}
	return dedup.MissingUnframed
}
