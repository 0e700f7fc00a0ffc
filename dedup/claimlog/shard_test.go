package claimlog

import (
	"fmt"
	"testing"
)

func TestIDsAreSpreadOverAllShards(t *testing.T) {
	const shards, ids = 7, 70_000
	var counts [shards]int
	for i := range ids {
		counts[hashKey{1}.shardOf(fmt.Sprint(i), shards)]++
	}
	for shard, n := range counts {
		if n < ids/shards*9/10 || n > ids/shards*11/10 {
			t.Errorf("shard %d has %d of %d IDs", shard, n, ids)
		}
	}
}
