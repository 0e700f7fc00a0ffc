// Package consumer is membership in a Kafka consumer group: poll a batch, hand it on, commit it. It
// says what a session does; package client below it knows how, on franz-go.
//
// A session is one member. It commits only what it handed out and only when told so, after the
// forwards are acknowledged. Transactional commits forwards, fence and offsets in one Kafka
// transaction; AtLeastOnce writes the fence and then commits the offsets.
//
//	Transactional                                          AtLeastOnce
//
//	idle                                                   idle
//	 │ Poll: fences are read, places are checked            │ Poll                    (offsets of the last batch
//	polled ─► claiming; its goroutine (opening)            polled ─► claiming           are on their way)
//	 │         begins the transaction, adds offsets         │
//	 │ Begin: opening is over, fences are produced          │ Begin: those offsets are committed
//	begun ─► Produce …                                     begun ─► Produce …
//	 │ Commit: EndTxn                                       │ Commit: fences, then offsets are sent
//	committed ─► idle                                      committed ─► idle
//	 or Abort, from polled on ─► given back ─► idle         or Abort, before Produce ─► given back ─► idle
//
// The lane's goroutine calls the methods of a session, one at a time. While a batch is claimed the
// opening's goroutine has the transaction; Begin, Abort and Close end it first. The client's
// goroutine calls Events, at any time: it takes partitions away and ends the claims of the batch in
// hand, and nothing else. A third goroutine measures the lag. What they share is behind member.mu.
// Only the lane ends a batch, and only the one who made the session closes it.
//
// The fence (package fence) remembers, apart from the group's offsets, up to where each input
// partition is done.
package consumer

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/fence"
)

// Options describe the work of one member of a consumer group.
type Options struct {
	Input         string
	ConsumerGroup string
	FenceTopic    string
	AcceptSkips   bool          // do not return to the fences from offsets above them
	Limit         *BatchLimit   // of the lane's batches
	TTL           time.Duration // how long a claim holds; 0: for as long as copies come
	// TransactionTimeout bounds how long a dead member blocks its partitions and the readers of the
	// output. A batch's offsets join the transaction while it is claimed, for claimPatience at the
	// most.
	TransactionTimeout time.Duration

	// Store is the identity of the store that has the claims. CheckStore is asked about fences of
	// another one, and their partitions; an error says that the claims that they build on are not
	// in this store. Without it all fences count.
	Store      string
	CheckStore func(ctx context.Context, partition int32, f fence.Fence) error
	// CheckScope is asked at each assignment whether claims may be made at all: they may have been
	// moved to another store since the process began. Nil: they may.
	CheckScope func(ctx context.Context) error

	Metrics *Metrics
	Logger  *slog.Logger
}

// Offsets are places of the input, by partition. A negative offset says that there is none.
type Offsets = map[int32]kgo.EpochOffset

// Client is a session's hold on Kafka: a member of the consumer group with the producer that
// belongs to it. Package consumer/client has the one for brokers, and the simulation another one.
//
// Polls come from one goroutine. The other calls may come from several.
type Client interface {
	// Poll returns at most n records as soon as there are some, or an error as kgo.NewErrFetch does
	// when ctx ends.
	Poll(ctx context.Context, n int) kgo.Fetches
	// Seek has the next polls of some partitions deliver from other places. A client may pass over
	// a partition of which it has not fetched anything yet.
	Seek(Offsets)
	// Pause has the next polls deliver nothing of some partitions, also of what was fetched ahead.
	Pause(partitions ...int32)
	// Resume ends a pause. The polls go on where they were, or at the last Seek.
	Resume(partitions ...int32)
	// Committed are the group's offsets as they were when the partitions were assigned, or as
	// Commit left them.
	Committed() Offsets
	// GroupOffsets asks the group's coordinator. A pending offset of a transaction is an error
	// (KIP-447).
	GroupOffsets(ctx context.Context) (Offsets, error)
	// Commit sends offsets for the generation that the member is in, and calls answered once. No
	// rebalance begins before.
	Commit(ctx context.Context, offsets Offsets, answered func(error))
	// Bounds tells where the logs of the input's partitions begin and end for readers of committed
	// records.
	Bounds(ctx context.Context) (map[int32]Bounds, error)
	// EpochEnds tells where the log of a partition ends, or has ended, for what was written up to a
	// leader epoch (KIP-320). A partition of which its leader does not know that is not there.
	EpochEnds(ctx context.Context, epochs map[int32]int32) (map[int32]int64, error)
	// Fences reads the last committed fences. It waits for transactions that are open on the fence
	// topic.
	Fences(ctx context.Context, partitions []int32) (fence.Found, error)
	// Narrow tells which of the input's partitions have no counterpart in the fence topic, or in an
	// output that takes the partition numbers of the input, and why. It widens what it may.
	Narrow(ctx context.Context, partitions []int32) (map[int32]string, error)
	// CheckOffsets returns ErrStrangeOffsets if partitions without a fence have an offset that
	// kdedup did not commit.
	CheckOffsets(ctx context.Context, partitions []int32) error
	// HasMembers reports whether a consumer group has members.
	HasMembers(ctx context.Context, group string) (bool, error)

	// Produce sends a record and calls promise once.
	Produce(ctx context.Context, r *kgo.Record, promise func(*kgo.Record, error))
	// Flush returns when all promises were called.
	Flush(ctx context.Context) error

	// Joined reports whether the group has accepted this member.
	Joined() bool
	// AllowRebalance lets a rebalance begin that waits since the last poll, if the client has it
	// wait.
	AllowRebalance()
	// Close leaves the group.
	Close()
}

// TransactionalClient is a Client whose records belong to transactions, one after the other.
type TransactionalClient interface {
	Client
	// Begin begins a transaction. No request is sent for it. With ErrMarkersLost there is none.
	Begin(ctx context.Context) error
	// AddOffsets makes the offsets of a batch a part of the transaction.
	AddOffsets(ctx context.Context, topicID [16]byte, offsets Offsets) error
	// End commits or aborts the transaction. A client ends only what it has written records in
	// itself.
	End(ctx context.Context, commit bool) error
	// Discard gives up the records that were not sent yet.
	Discard(ctx context.Context) error
	// Marked reports whether the markers of the last transaction are written.
	Marked(ctx context.Context) (bool, error)
}

// ErrMarkersLost says that a transaction has ended, and that its markers are missing on some
// partitions. The next transaction of the client would decide over its records, maybe otherwise. So
// the session ends without one: the next session of its name ends what is open as it was decided.
var ErrMarkersLost = errors.New("the last transaction has ended without its markers")

// Bounds of a partition's log: the offset of its first record, the last stable offset, and the end.
// Records between the last two wait for the end of a producer's transaction.
type Bounds struct{ First, End, High int64 }

// Events is what a client tells its session about the group, on a goroutine of the client. Polls
// wait for Assigned, and the group for the return of Revoked.
type Events interface {
	Assigned(partitions []int32)
	// Revoked: another member waits for the partitions.
	Revoked(partitions []int32)
	// Lost: another member may have the partitions already.
	Lost(partitions []int32)
	// Blocked: a rebalance waits for the end of the batch in hand.
	Blocked()
}
