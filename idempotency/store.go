package idempotency

import (
	"context"
	"crypto/rand"
	"fmt"
	"time"
)

// State is what became of a key.
type State uint8

// The states of a key; see the diagram of the package.
const (
	Started   State = iota + 1 // a function runs, or its owner died
	Completed                  // Response is the response
	Failed                     // for good; Response is the text of the error
	Released                   // the function failed and may run again
)

// String returns the state in lower case.
func (s State) String() string {
	switch s {
	case Started:
		return "started"
	case Completed:
		return "completed"
	case Failed:
		return "failed"
	case Released:
		return "released"
	}
	return "unknown"
}

// ParseState is the inverse of String, for stores that keep the name. Another name is an error that
// wraps ErrRecord.
func ParseState(name string) (State, error) {
	for state := Started; state <= Released; state++ {
		if state.String() == name {
			return state, nil
		}
	}
	return 0, fmt.Errorf("%w: state %q", ErrRecord, name)
}

// Owner tells executions apart. It is random.
type Owner [16]byte

func newOwner() (o Owner) {
	_, _ = rand.Read(o[:]) // never fails
	return o
}

// Version identifies one write of a record: no two writes of a key have the same. The zero Version
// stands for no record.
type Version struct {
	Owner    Owner
	Revision int64 // grows by one with each write of a record
}

// Record is what a store keeps for a key.
type Record struct {
	Version
	State State
	Token int64 // the fencing token of the last execution
	// how long an owner may be silent before it loses the key; whole milliseconds
	Lease    time.Duration
	Request  Hash
	Response []byte // or the text of a failure; empty while Started or Released
}

// Store keeps one record per key. Every implementation passes the suite in idempotency/storetest.
//
// For one key the calls are linearizable, in all processes that may share the store: each call sees
// the effect of every call that returned before it began. A swap that was reported as done is
// durable: a crash of the process, or of what the store calls a survivable part of itself, does not
// take it back.
//
// After an error nobody knows whether a swap was done, or will be: the caller repeats the same swap
// until it is answered, and recognises its own work by the version of the record that stands. A
// store may repeat a swap by itself.
//
// The caller does not change what it passed while a call runs; the store keeps no reference to it
// afterwards, and what it returns belongs to the caller. All methods are safe for concurrent use.
type Store interface {
	// Get returns the record of the key. The zero Record says that there is none: it was never
	// written, or its TTL is over.
	Get(ctx context.Context, key Key) (Record, error)

	// Swap puts next in the place of the record whose version is old, in one step, to live for ttl
	// from now; the store may round that up to its granularity. The zero Version stands for no
	// record: the swap is done if the key has none. Then current is the zero Record.
	//
	// If the swap was refused, current is the record that stood in its way, read with the refusal
	// or later: it may be the zero Record, too.
	Swap(ctx context.Context, key Key, old Version, next Record, ttl time.Duration) (current Record,
		done bool, err error)
}
