package cassandra

import (
	"encoding/binary"
	"fmt"
	"strings"
	"sync"

	"github.com/kdedup/kdedup/dedup"
)

// batchSizes are the batch lengths that get a prepared statement. A batch of another length is
// filled up with repeats of its last claim, which changes nothing: the condition of equal rows is
// checked once, and the repeated row is the same row. But the server handles it like any other, so
// the lengths lie close together; every one in use takes about 1.4 KiB per row of the server's
// statement cache (10 MiB at the least).
var batchSizes = [...]int{
	1, 2, 3, 4, 6, 8, 10, 12, 14, 16, 20, 24, 28, 32, 36, 40, 44, 48, 52, 56, 60, 64, 70, 76, 82,
	88, 94, 100,
	108, 116, 124, 132, 140, 148, 156, 164, 172, 180, 190, 200,
}

func paddedSize(n int) int {
	for _, size := range batchSizes {
		if size >= n {
			return size
		}
	}
	return n
}

// scopeState is what the store keeps per scope: its statements and the locks of its buckets.
type scopeState struct {
	scope    dedup.Scope
	hash     hasher
	insert   string          // one row; bucket, message_id and owner are bound
	taking   string          // the same with a TTL of its own, which is bound, too
	renewing string          // moves the end of a row; its owner is bound twice, around the ID
	selectIn string          // in a scope that is sliding with the TTL that is left
	locks    []chan struct{} // stripe of buckets -> held by the one request in flight
	suspects suspects
	ratio    duplicateRatio // of those that are no suspects

	mu      sync.Mutex
	batches map[int]string
}

// maxStripes bounds the locks of a scope with very many buckets, where two batches seldom meet.
const maxStripes = 4096

func newScopeState(table string, scope dedup.Scope, hash hasher) *scopeState {
	where := fmt.Sprintf("consumer_group = %s AND topic = %s AND bucket = ?",
		quote(scope.ConsumerGroup), quote(scope.Name))
	s := &scopeState{
		scope: scope, hash: hash,
		insert: fmt.Sprintf("INSERT INTO %s (consumer_group, topic, bucket, message_id, owner) "+
			"VALUES (%s, %s, ?, ?, ?) IF NOT EXISTS USING TTL %d",
			table, quote(scope.ConsumerGroup), quote(scope.Name), int64(scope.TTL.Seconds())),
		taking: fmt.Sprintf("INSERT INTO %s (consumer_group, topic, bucket, message_id, owner) "+
			"VALUES (%s, %s, ?, ?, ?) IF NOT EXISTS USING TTL ?",
			table, quote(scope.ConsumerGroup), quote(scope.Name)),
		renewing: fmt.Sprintf("UPDATE %s USING TTL %d SET owner = ? WHERE %s AND message_id = ? "+
			"IF owner = ?", table, int64(scope.TTL.Seconds()), where),
		selectIn: fmt.Sprintf("SELECT message_id, owner%s FROM %s WHERE %s AND message_id IN ?",
			map[bool]string{true: ", TTL(owner)"}[scope.Sliding], table, where),
		locks:   make([]chan struct{}, min(scope.Buckets, maxStripes)),
		batches: make(map[int]string),
	}
	for i := range s.locks {
		s.locks[i] = make(chan struct{}, 1)
	}
	return s
}

// batch returns the statement that claims n IDs of one bucket.
func (s *scopeState) batch(n int) string {
	if n == 1 {
		return s.insert
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.batches[n] == "" {
		s.batches[n] = batchOf(s.insert, n)
	}
	return s.batches[n]
}

// takeOver returns the statement that takes n claims of another store into a bucket.
func (s *scopeState) takeOver(n int) string {
	if n == 1 {
		return s.taking
	}
	return batchOf(s.taking, n)
}

func batchOf(statement string, n int) string {
	return "BEGIN UNLOGGED BATCH " + strings.Repeat(statement+"; ", n) + "APPLY BATCH"
}

// bucket is part of the stored data: the hash of the ID, modulo the number of buckets.
func (s *scopeState) bucket(hash uint64) int32 { return int32(hash % uint64(s.scope.Buckets)) }

// routingKey is the partition key in the form that token-aware routing hashes: per component its
// length in two bytes, its bytes and a zero byte.
func (s *scopeState) routingKey(bucket int32) []byte {
	var number [4]byte
	binary.BigEndian.PutUint32(number[:], uint32(bucket))
	var key []byte
	for _, part := range []string{s.scope.ConsumerGroup, s.scope.Name, string(number[:])} {
		key = binary.BigEndian.AppendUint16(key, uint16(len(part)))
		key = append(key, part...)
		key = append(key, 0)
	}
	return key
}

// quote makes a CQL string constant.
func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }
