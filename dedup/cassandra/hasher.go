package cassandra

import (
	"crypto/rand"
	"encoding/hex"
	"strings"

	"github.com/cespare/xxhash/v2"

	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/internal/hashlog/siphash"
)

// hasher decides the bucket of an ID, so it is part of the stored data. Whoever may write to the
// input could aim all IDs at one bucket, if there were no secret in it.
type hasher struct {
	keyed bool // false in scopes that were registered by a version before the keys: xxHash64
	key   siphash.Key
}

func newHasher() hasher {
	h := hasher{keyed: true}
	_, _ = rand.Read(h.key[:]) // never fails
	return h
}

func (h *hasher) sum(id dedup.ID) uint64 {
	if h.keyed {
		return h.key.Sum64([]byte(id)) // not copied: Sum64 keeps nothing
	}
	return xxhash.Sum64String(string(id))
}

// registration is a row of dedup_scopes.
type registration struct {
	scope dedup.Scope
	hash  hasher
}

// keyMark comes before the key in the column extractor. The key has no column of its own, so that a
// version which knows no keys refuses the scope, for its extractor is another: it would look for
// the claims in other buckets.
const keyMark = " key:"

func (r *registration) extractor() string {
	if !r.hash.keyed {
		return r.scope.Extractor
	}
	return r.scope.Extractor + keyMark + hex.EncodeToString(r.hash.key[:])
}

// splitExtractor takes the column apart.
func splitExtractor(column string) (extractor string, h hasher) {
	at := strings.LastIndex(column, keyMark)
	if at < 0 {
		return column, h
	}
	key, err := hex.DecodeString(column[at+len(keyMark):])
	if err != nil || len(key) != len(h.key) {
		return column, h
	}
	h.keyed = true
	copy(h.key[:], key)
	return column[:at], h
}
