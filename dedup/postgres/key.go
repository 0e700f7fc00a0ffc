package postgres

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"slices"

	"github.com/kdedup/kdedup/dedup"
)

// An index entry has room for about 2,700 bytes. An ID of keyBytes or more is stored as its
// beginning and its SHA-256, keyBytes together; a shorter one is stored as it is, so the two cannot
// be equal.
const keyBytes = 512

func appendKey(to []byte, id dedup.ID) []byte {
	if len(id) < keyBytes {
		return append(to, id...)
	}
	sum := sha256.Sum256([]byte(id))
	to = append(to, id[:keyBytes-len(sum)]...)
	return append(to, sum[:]...)
}

func keyOf(id dedup.ID) []byte { return appendKey(nil, id) }

// keysOf returns the keys of the claims in one piece of memory.
func keysOf(claims []dedup.Claim) [][]byte {
	size := 0
	for i := range claims {
		size += min(len(claims[i].ID), keyBytes)
	}
	data, keys := make([]byte, 0, size), make([][]byte, len(claims))
	for i := range claims {
		from := len(data)
		data = appendKey(data, claims[i].ID)
		keys[i] = data[from:len(data):len(data)]
	}
	return keys
}

// inOrder returns the indexes of the keys in the order in which all processes lock them.
func inOrder(keys [][]byte) []int32 {
	order := make([]int32, len(keys))
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortFunc(order, func(a, b int32) int { return bytes.Compare(keys[a], keys[b]) })
	return order
}

// scopeKey is the number that stands for a scope in the rows of its claims. It follows from the
// names alone: a number that the table gave out would mean another scope to a process that runs on
// while the tables are created again. Register sees to it that no two scopes share one.
func scopeKey(scope dedup.Scope) int64 {
	name := binary.AppendUvarint(nil, uint64(len(scope.ConsumerGroup)))
	name = append(name, scope.ConsumerGroup...)
	name = append(name, scope.Name...)
	sum := sha256.Sum256(name)
	return int64(binary.BigEndian.Uint64(sum[:8]))
}
