// Package dedup answers one question: is this record the first of its message ID?
//
// A record claims its ID for its own coordinates. The store keeps the first claim until its TTL
// ends and shows every later claimant who the owner is. Because the owner is a place in the input
// log, which is the same on every redelivery, a claim may be repeated after a crash or a timeout:
// the record that already owns its ID recognises itself. That is what makes "claim, then forward"
// lossless.
//
// # In a loop of your own
//
// A [Deduper] judges the batches of one consumer, on a [Store] of one of the packages below this
// one. The order of the steps is what matters:
//
//	poll ─► claim (Deduper.Judge) ─► the effect, for VerdictFirst and VerdictMine ─► commit the offsets
//
// Nothing is lost: offsets are committed after the effect, and a record that claimed its ID and
// then met a crash comes again, with [VerdictMine]. Copies of it are [VerdictDuplicate], on
// whatever partition and for whatever consumer that shares the store. What a crash between effect
// and commit does is to repeat the effects of one batch. To exclude that, too, put effect and
// offsets into one Kafka transaction, as kdedup itself does; or effect and claim into one
// transaction of PostgreSQL, see TxClaims in dedup/postgres; or make the effect idempotent, see
// package idempotency.
//
// The package's example is such a loop; examples/consumer in the repository is a whole program.
//
// # Without Kafka
//
// A [Store] knows nothing of Kafka. Whatever has an ID, and a place that stays the same when it is
// delivered again, can claim: put the place into [Coordinates], and compare [Answer].Owner with it.
package dedup

import (
	"context"
	"time"
)

// ID is a message ID: any bytes, not necessarily text. It may share memory with the record from
// which it was extracted and is never modified.
type ID string

// Coordinates name one record in the input log. They are equal on every redelivery of that record
// and differ between any two records: TopicID changes when a topic is recreated (KIP-516), and
// LeaderEpoch when an unclean leader election makes offsets be used again (KIP-320).
type Coordinates struct {
	TopicID     [16]byte
	Partition   int32
	Offset      int64
	LeaderEpoch int32
}

// Same reports whether both are the coordinates of one record. Brokers before 2.8, and some
// proxies, tell no topic IDs: during a rolling upgrade a record may be claimed with the ID and come
// again without it, or the other way round. A topic ID of zero is unknown, and fits to any.
func (c Coordinates) Same(o Coordinates) bool {
	return c.Offset == o.Offset && c.Partition == o.Partition && c.LeaderEpoch == o.LeaderEpoch &&
		(c.TopicID == o.TopicID || c.TopicID == [16]byte{} || o.TopicID == [16]byte{})
}

// Fingerprint is the beginning of a SHA-256 over a record's key and value. Two records with the
// same ID and different fingerprints are a conflict, see VerdictConflict. The zero
// fingerprint is that of a claim that was made without a record, by hand: every record matches it.
type Fingerprint [16]byte

// Matches reports whether a record with the fingerprint of is a copy of what f was taken from.
func (f Fingerprint) Matches(of Fingerprint) bool { return f == of || f == Fingerprint{} }

// Claim asks that Owner own ID, unless somebody owns it already.
type Claim struct {
	ID          ID
	Owner       Coordinates
	Fingerprint Fingerprint
	// After is a time in the past, or zero: if the claim is made, its ClaimedAt is later, whatever
	// the claimant's clock says. A record that claims again, below what was committed, must not be
	// taken for settled because its clock is behind the one of the claimant before.
	After time.Time
	// Copied: a record that is not Owner, and has the ID, shares the claim with it. In a scope that
	// is Sliding, it renews Owner's own claim.
	Copied bool
}

// Renews reports whether the claim, of which the store says that somebody owns its ID, is a copy's,
// which puts the end off in a scope that is Sliding. The owner that comes again is none.
func (c *Claim) Renews(scope Scope, owner Coordinates) bool {
	return scope.Sliding && (c.Copied || !owner.Same(c.Owner))
}

// ClaimTime is the ClaimedAt of claims that one call makes when the claimant's clock says now: that
// time in milliseconds, or the first one after all their After.
func ClaimTime(claims []Claim, now time.Time) time.Time {
	at := now.UnixMilli()
	for i := range claims {
		if after := claims[i].After; !after.IsZero() && after.UnixMilli() >= at {
			at = after.UnixMilli() + 1
		}
	}
	return time.UnixMilli(at)
}

// Scope is a namespace of message IDs and what holds for all claims in it.
type Scope struct {
	ConsumerGroup string
	Name          string        // the input topic, unless several topics share one scope
	TTL           time.Duration // how long a claim holds; whole seconds, at least one
	Buckets       int           // in how many storage partitions a store may spread the claims
	// how IDs are made, e.g. "header:message-id"; claims of another extractor mean nothing
	Extractor string
	// Sliding: the TTL counts from the last copy, and not from the claim, see Store. It is not
	// registered, and may differ between processes and from one start to the next.
	Sliding bool
}

// renewals is how often a claim can be renewed within its TTL: copies shall seldom write.
const renewals = 10

// DueAt is how much of its life a claim has left when it is due: a copy that comes then, or later,
// renews it. So a claim ends between nine tenths of the TTL and all of it after the last copy.
func (s *Scope) DueAt() time.Duration { return s.TTL - s.TTL/renewals }

// Outcome is what a store knows about one claim.
type Outcome uint8

const (
	// Undecided: the store cannot say yet; the claim may or may not have been applied. Claim again.
	Undecided Outcome = iota
	// Applied: this very call made the claimant the owner. A store that sends a claim a second
	// time when the first one is slow may answer Exists for it, with the claimant as the owner.
	Applied
	// Exists: somebody owns the ID, perhaps the claimant itself through an earlier call.
	Exists
)

// Answer is a store's answer to one claim. Unless it is Undecided, Owner, Fingerprint and ClaimedAt
// are those of the claim that holds the ID: the caller's own after Applied.
type Answer struct {
	Outcome     Outcome
	Owner       Coordinates
	Fingerprint Fingerprint
	ClaimedAt   time.Time // the claimant's clock, in milliseconds; see ClaimTime
}

// Store decides who owns a message ID. Every implementation passes the suite in dedup/storetest.
//
// For one scope and ID the calls are linearizable until the claim's TTL ends: of any number of
// concurrent claimants, in any number of processes that may share the store, exactly one becomes
// the owner and is told so, by Applied or by Exists with itself as the owner. A decided answer is
// durable when it is returned: a crash of the process, or of what the store calls a survivable part
// of itself, does not take it back.
//
// Claim may be repeated with the same owner at any time and never does harm: after an Undecided
// answer the caller repeats that claim until it is decided. A store may ask a second place where
// the first one is slow, as keepers do. It does not repeat by itself what a deadline left open.
// The IDs of one call are distinct. The caller does not change claims while the call runs; the
// store keeps no reference to them afterwards.
//
// In a scope that is Sliding, a claim that Renews one which is due (Scope.DueAt) is answered by
// Exists once the owner's claim holds for the scope's TTL from now on; nothing else of it changes.
// What cannot be renewed for certain is Undecided: it may be renewed or not, and is claimed again.
// A renewal never makes an end come earlier, nor brings back a claim that was released or has
// ended. Who would have renewed that claims the ID for itself, or is Undecided.
//
// All methods are safe for concurrent use, except that Close comes last.
type Store interface {
	// Register records the scope's settings that give its claims their meaning (Buckets and
	// Extractor) when the scope is first seen, and compares them ever after. A difference is an
	// error that wraps ErrScopeMismatch, names both values and says what to do.
	Register(ctx context.Context, scope Scope) error

	// Registered returns the settings with which the scope was registered, if it was. It looks
	// at the consumer group and the name only, and changes nothing.
	Registered(ctx context.Context, scope Scope) (registered Scope, found bool, err error)

	// Claim returns one answer per claim, in order. The scope is registered, or never will be. The
	// error, if any, says why some answers are Undecided; the others are good all the same.
	Claim(ctx context.Context, scope Scope, claims []Claim) ([]Answer, error)

	// Lookup returns who owns the ID; the answer is Undecided when nobody does.
	// It sees every claim that was answered before the call.
	Lookup(ctx context.Context, scope Scope, id ID) (Answer, error)

	// Release makes the ID free: the next claim is Applied. Releasing a free ID does nothing.
	Release(ctx context.Context, scope Scope, id ID) error

	// Forget deletes all claims of a scope and its registration. Nobody uses the scope meanwhile.
	Forget(ctx context.Context, scope Scope) error

	// Close returns when no call and no goroutine of the store is left.
	Close() error
}
