package claimlog

import (
	"context"
	"errors"
	"time"
)

// ErrCut is wrapped by errors of a Log that no longer has what was read of it: it was cut, deleted
// and made again, or its beginning has passed the reader. Whoever has applied more than the log has
// must forget it.
var ErrCut = errors.New("the log no longer has what was read of it")

// Position is how far a shard was read.
type Position struct {
	Next  int64 `json:"next"`  // the place of the next block
	Epoch int32 `json:"epoch"` // of the block before it; -1: no block was read
}

// notRead is the position of a shard that a reader leaves to others.
var notRead = Position{Next: -1, Epoch: -1}

// Left reports whether the reader leaves the shard to others.
func (p Position) Left() bool { return p.Next < 0 }

// Span is what a log has of a shard: the places from First up to, and without, End.
type Span struct{ First, End int64 }

// Entry is one block in its place.
type Entry struct {
	Shard int
	At    int64 // places of a shard rise; those that are left out have no block, nor ever will
	// never falls within a shard; a place that is written again after a cut has a higher one
	Epoch int32
	Time  int64 // of the log's clock, in milliseconds
	// until when the log keeps the block, by the same clock, and never before the one in front of
	// it; 0: all are kept equally long
	Ends  int64
	Block []byte
}

// Log is a number of shards, each a totally ordered sequence of blocks that all processes see
// alike. It begins with places that retention has removed, and grows at the end. All methods are
// safe for concurrent use, except that Close comes last.
type Log interface {
	// ID is one of the log, and another one once the log was deleted and made again.
	ID() string

	// Shards is how many shards there are; fewer may be in use.
	Shards() int

	// Retention is how long a block stays at least, whatever it is; 0 means for ever, or for as
	// long as Append was told.
	Retention() time.Duration

	// Append puts a block behind all others of a shard. It keeps the block until it calls done,
	// once, from any goroutine. After an error the block may stand in the log all the same, or come
	// to stand there later. Without one it stands there, and readers will see it, unless the log is
	// cut. The block is needed for as long as keep says: a log without a Retention may let it go
	// after that, but no earlier than any block in front of it.
	Append(shard int, block []byte, keep time.Duration, done func(error))

	// Spans returns what the log has of the first len(read) shards now: of each at least every
	// block that anybody was shown before the call, or nothing of a shard that is Left. It returns
	// ErrCut unless everything up to these positions is in the log as it was read, or was removed
	// by retention.
	Spans(ctx context.Context, read []Position) ([]Span, error)

	// Read calls apply with the entries from the positions on, those of a shard in their order, for
	// as long as ctx lives and apply returns nil, whose error it returns. It shows nothing of a
	// shard that is Left, to which Append need not work. It shows only what no
	// survivable failure takes back. Entries are not kept, nor changed, after apply has returned.
	Read(ctx context.Context, from []Position, apply func([]Entry) error) error

	// Close returns when no goroutine of the log is left; what was appended and is not done fails.
	Close() error
}

// Registry keeps a few small values, apart from the shards and for ever.
type Registry interface {
	// Decide proposes a value for a key and returns the one that stands: the first that was
	// proposed, by whomever. It is durable when it is returned.
	Decide(ctx context.Context, key string, proposal []byte) ([]byte, error)
	// Decided returns the value that stands, or nil.
	Decided(ctx context.Context, key string) ([]byte, error)
	// Withdraw removes the value. The next proposal will stand.
	Withdraw(ctx context.Context, key string) error
}

// replace has another value stand for a key. Meanwhile none may.
func replace(ctx context.Context, r Registry, key string, value []byte) error {
	if err := r.Withdraw(ctx, key); err != nil {
		return err
	}
	_, err := r.Decide(ctx, key, value)
	return err
}

// Opener leads to the logs. Each consumer group of scopes has one.
type Opener interface {
	// Open returns the log of a group, which must exist: a start creates nothing.
	Open(ctx context.Context, group string) (Log, error)
	// Registry returns the registry of a group.
	Registry(group string) Registry
	// Close comes after that of all logs.
	Close() error
}
