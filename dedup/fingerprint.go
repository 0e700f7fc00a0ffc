package dedup

import (
	"crypto/sha256"
	"encoding/binary"
	"hash"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Fingerprinter hashes records; it is not safe for concurrent use. It exists to keep the buffers.
type Fingerprinter struct {
	sha    hash.Hash
	prefix [9]byte
	sum    [sha256.Size]byte
}

// NewFingerprinter returns one that is ready.
func NewFingerprinter() *Fingerprinter { return &Fingerprinter{sha: sha256.New()} }

// Of covers the key, its length and whether the value is null, then the value, so that no byte can
// move between key and value unseen and a tombstone differs from an empty value. Headers are left
// out: producers that retry often add an attempt count or a new trace context there.
func (f *Fingerprinter) Of(r *kgo.Record) Fingerprint {
	binary.BigEndian.PutUint64(f.prefix[:8], uint64(len(r.Key)))
	f.prefix[8] = nullness(r)
	f.sha.Reset()
	f.sha.Write(f.prefix[:])
	f.sha.Write(r.Key)
	f.sha.Write(r.Value)
	return Fingerprint(f.sha.Sum(f.sum[:0]))
}

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
