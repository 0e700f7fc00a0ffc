package claimlog

import (
	"math/bits"

	"github.com/kdedup/kdedup/internal/hashlog/siphash"
)

// hashKey is the secret of a log by which IDs are spread over its shards: a producer chooses
// message IDs, and must not be able to put all of them into one.
type hashKey siphash.Key

// shardOf is the shard of an ID, of the given number.
func (k hashKey) shardOf(id string, shards int) int {
	high, _ := bits.Mul64((*siphash.Key)(&k).Sum64([]byte(id)), uint64(shards))
	return int(high)
}
