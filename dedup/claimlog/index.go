package claimlog

import (
	"context"
	"errors"
	"math"

	"github.com/kdedup/kdedup/internal/hashlog"
)

// errIndex is wrapped by errors of an index that cannot be used any more. It is made again from the
// log.
var errIndex = errors.New("the index cannot be used")

// index keeps claims by key. One goroutine at a time uses it, but save and each may run beside the
// others.
type index interface {
	// get returns the value of a key, and when it ends, which may be in the past; nil if there is
	// none. It is valid until the next call. It may pass over what was flushed before a point,
	// which makes it quick; 0 is before all.
	get(key []byte, since uint64) (value []byte, ends int64, err error)
	// end is the point behind all that was flushed so far. It is not 0.
	end() uint64
	// put and remove are seen by get after the next flush, and not before. What a key has ends no
	// earlier than what it had; a removal names the end of what it removes.
	put(key, value []byte, ends int64)
	remove(key []byte, ends int64)
	flush(ctx context.Context) error
	// each shows what was flushed and ends after a time, in no particular order; also while others
	// use the index, and then perhaps without what they do. It is valid until show returns.
	each(
		ctx context.Context, after int64, show func(key, value []byte, ends int64) error,
	) error
	// drop may forget what ends at the time or before it, see progress.ended.
	drop(ctx context.Context, now int64) error
	// latest is a time at which all claims have ended.
	latest() int64

	// saved returns the progress up to which the index surely has everything; it may have more.
	// Zero: nothing.
	saved() progress
	// mark stands for what was flushed so far.
	mark() mark
	// save keeps a progress, once all up to the mark is durable, if the index outlives the process.
	save(ctx context.Context, m mark, p progress) error
	// size is how many claims the index has, and how much disk they take.
	size() (claims int, bytes int64)
	// reset makes the index empty.
	reset() error
	close() error
}

// progress is how far an index has applied a log.
type progress struct {
	Version int          `json:"version"`
	Log     string       `json:"log"`     // its ID; empty: nothing was applied
	Decided uint64       `json:"decided"` // the ID that was agreed on
	Shards  []shardState `json:"shards"`
	// how far the files of the index go; nil in a version before it, and in memory
	Files *hashlog.Extent `json:"files,omitempty"`
}

const (
	// progressVersion is 3 since the files prove that they go as far as the progress says.
	progressVersion = 3
	// leastVersion is the first that is read: an index of before does not know where claims were
	// removed.
	leastVersion = 2
)

// mark is a place in an index.
type mark struct {
	synced hashlog.Mark
	end    hashlog.Point
}

// oldest is a time that all shards have reached: what ended by then has ended for every block to
// come. A shard without blocks has no claims.
func (p progress) oldest() int64 {
	oldest := int64(math.MaxInt64)
	for _, s := range p.Shards {
		if s.Time > 0 {
			oldest = min(oldest, s.Time)
		}
	}
	if oldest == math.MaxInt64 {
		return 0
	}
	return oldest
}

// ended is a time by which claims have ended that an index may forget. The blocks behind a saved
// progress may be applied once more, and must find what they found: also a claim that has ended
// since, if the claimant of a block that comes late cannot have known of it.
func (p progress) ended(late int64) int64 { return p.oldest() - late }

// longest is for how long any of the claims was put, in milliseconds.
func (p progress) longest() (longest int64) {
	for _, s := range p.Shards {
		longest = max(longest, s.Longest)
	}
	return longest
}
