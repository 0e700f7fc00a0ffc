package idempotency

import (
	"crypto/sha256"
	"fmt"
)

// Limits of a key, in bytes. They fit every store.
const (
	MaxNamespace = 255
	MaxID        = 1024
)

// Key names one piece of work. The same ID in two namespaces is two keys: put tenants and
// operations into the namespace, so that no caller meets the response of another.
type Key struct {
	Namespace string // any bytes, 1 to MaxNamespace
	ID        string // any bytes, 1 to MaxID
}

func (k Key) validate() error {
	switch {
	case k.ID == "":
		return fmt.Errorf("%w: the ID is empty", ErrInvalidKey)
	case len(k.ID) > MaxID:
		return fmt.Errorf("%w: the ID must have at most %d bytes, got %d", ErrInvalidKey, MaxID,
			len(k.ID))
	case k.Namespace == "": // without one every caller would get the responses of all others
		return fmt.Errorf("%w: the namespace is empty; choose a constant if all callers are one",
			ErrInvalidKey)
	case len(k.Namespace) > MaxNamespace:
		return fmt.Errorf("%w: the namespace must have at most %d bytes, got %d", ErrInvalidKey,
			MaxNamespace, len(k.Namespace))
	}
	return nil
}

// Hash is the SHA-256 of a request. It tells a retry from another request with the same key.
type Hash [sha256.Size]byte

// HashOf returns the hash of a request that is in memory. For a stream, sum it with crypto/sha256
// and convert the array.
func HashOf(request []byte) Hash { return sha256.Sum256(request) }
