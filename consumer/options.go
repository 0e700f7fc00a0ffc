package consumer

import (
	"context"
	"log/slog"
	"time"

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
