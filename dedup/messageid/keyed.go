package messageid

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"sync"

	"github.com/kdedup/kdedup/dedup"
)

// MinHMACKey is the least length of Source.HMACKey.
const MinHMACKey = 16

// keyedPrefix marks what is stored of an ID with a key: behind it are the 32 bytes of the
// HMAC-SHA-256. It tells an ID that somebody copied from the store or the status page from one that
// a record carries.
const keyedPrefix = "hmac:"

// keyed replaces IDs by their keyed hashes.
type keyed struct {
	macs  sync.Pool // of hash.Hash
	check string    // of the key, says nothing else about it
}

// newKeyed returns nil for no key.
func newKeyed(key []byte) (*keyed, error) {
	if len(key) == 0 {
		return nil, nil
	}
	if len(key) < MinHMACKey {
		return nil, fmt.Errorf("hmac_key must be at least %d bytes, got %d", MinHMACKey, len(key))
	}
	key = bytes.Clone(key)
	k := &keyed{macs: sync.Pool{New: func() any { return hmac.New(sha256.New, key) }}}
	// An ID of a record is never followed by this: it is another use of the key.
	k.check = hex.EncodeToString(k.sum([]byte("kdedup: which key is this?"), []byte{0})[:8])
	return k, nil
}

func (k *keyed) sum(parts ...[]byte) []byte {
	mac := k.macs.Get().(hash.Hash)
	defer k.macs.Put(mac)
	mac.Reset()
	for _, part := range parts {
		mac.Write(part) // never fails
	}
	return mac.Sum(nil)
}

func (k *keyed) id(id dedup.ID) dedup.ID {
	return keyedPrefix + dedup.ID(k.sum(bytesOf(id)))
}

// isKeyed reports whether the text is what was stored of an ID.
func isKeyed(text []byte) bool {
	return len(text) == len(keyedPrefix)+sha256.Size && bytes.HasPrefix(text, []byte(keyedPrefix))
}
