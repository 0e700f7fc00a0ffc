package messageid

import (
	"crypto/sha256"
	"encoding/binary"
	"hash"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/dedup"
)

// Fingerprinter hashes records; it is not safe for concurrent use. It exists to keep the buffers.
type Fingerprinter struct {
	sha    hash.Hash
	prefix [9]byte
	sum    [sha256.Size]byte

	content *content // nil: all of key and value
	encoder *encoder
	part    []byte
}

// NewFingerprinter returns one of all of key and value.
func NewFingerprinter() *Fingerprinter { return &Fingerprinter{sha: sha256.New()} }

// Fingerprinter returns a Fingerprinter of what the extractor's rules say.
func (e *Extractor) Fingerprinter() dedup.Fingerprinter { return e.fingerprinter() }

func (e *Extractor) fingerprinter() *Fingerprinter {
	f := NewFingerprinter()
	if f.content = e.content; f.content != nil {
		f.encoder = newEncoder()
	}
	return f
}

// Of covers the key, its length and whether the value is null, then the value, so that no byte can
// move between key and value unseen and a tombstone differs from an empty value. Headers are left
// out: producers that retry often add an attempt count or a new trace context there. With rules
// about the content of a value, its encoding without what does not count takes its place.
func (f *Fingerprinter) Of(r *kgo.Record) dedup.Fingerprint {
	if f.content == nil {
		return f.hash(r, nullness(r), r.Value)
	}
	if f.content.none {
		return dedup.Fingerprint{}
	}
	if !f.partly(r) {
		return f.hash(r, nullness(r), r.Value)
	}
	return f.hash(r, nullness(r)|partial, f.part)
}

// Partial reports whether rules leave a part of the record's value out of what counts: where the
// value cannot be read as they say, all of it counts.
func (e *Extractor) Partial(r *kgo.Record) bool { return e.fingerprinter().partly(r) }

// partly encodes the part of the record's value that counts.
func (f *Fingerprinter) partly(r *kgo.Record) (is bool) {
	if f.content == nil || f.content.none {
		return false
	}
	if cap(f.part) > mostKept {
		f.part = nil
	}
	f.part, is = f.content.of(f.part[:0], r, f.encoder)
	return is
}

func (f *Fingerprinter) hash(r *kgo.Record, kind byte, value []byte) dedup.Fingerprint {
	binary.BigEndian.PutUint64(f.prefix[:8], uint64(len(r.Key)))
	f.prefix[8] = kind
	f.sha.Reset()
	f.sha.Write(f.prefix[:])
	f.sha.Write(r.Key)
	f.sha.Write(value)
	return dedup.Fingerprint(f.sha.Sum(f.sum[:0]))
}

// partial tells an encoding from a value with the same bytes.
const partial = 4

func nullness(r *kgo.Record) byte {
	var b byte
	if r.Key == nil {
		b |= 1
	}
	if r.Value == nil {
		b |= 2
	}
	return b
}
