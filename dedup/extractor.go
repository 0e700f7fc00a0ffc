package dedup

import (
	"context"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Extractor finds message IDs. It is safe for concurrent use.
type Extractor interface {
	// Extract returns the record's ID, or why it has none, or why none is looked for. The ID may
	// share memory with the record.
	Extract(r *kgo.Record) (ID, MissingReason)

	// String describes without ambiguity how IDs are made and what fingerprints are of. It is
	// stored with a scope: claims that were made with another one mean nothing.
	String() string

	// Fingerprinter returns one for a single goroutine.
	Fingerprinter() Fingerprinter

	// Notice returns what the records so far have shown that an operator should hear of, each text
	// once; empty: nothing. It is asked for after each batch.
	Notice() string
}

// Resolver is an Extractor that has to ask somebody before it can find some IDs. Extract never
// asks: it returns MissingUnresolved.
type Resolver interface {
	// Resolve finds out what Extract lacks for records of which it said MissingUnresolved. The
	// error says why something is left open; the caller asks again.
	Resolve(ctx context.Context, records []*kgo.Record) error
}

// Fingerprinter says whether records with equal IDs have the same content. It is not safe for
// concurrent use.
type Fingerprinter interface {
	Of(r *kgo.Record) Fingerprint
}
