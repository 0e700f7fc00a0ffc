package cassandra

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/internal/crashpoint"
)

// unread stands for the life of a claim that a conditional statement has named, which tells none.
const unread = -1

// unreadOf is nil where claims are not renewed.
func unreadOf(scope dedup.Scope, claims []dedup.Claim) []int {
	if !scope.Sliding {
		return nil
	}
	return slices.Repeat([]int{unread}, len(claims))
}

// renewRounds bounds how often claims are found that have gone when they are to be renewed.
const renewRounds = 8

var errGone = errors.New("claims keep ending, or are released, before they are renewed")

// renew puts off the ends of the claims that copies in the chunk have found, once the chunk is
// decided; failed is the error of that. What it cannot renew for certain it leaves undecided.
//
// It is a conditional statement, as everything that writes to a row: with a plain one, a renewal
// and a release could both win. It writes the owner as it was read, if that still stands there, so
// a claim that has ended or was released stays away, and a younger one as it is. The row's marker
// keeps the TTL of the claim, and is gone first.
func (r *round) renew(ctx context.Context, chunk []int32, failed error) error {
	copies := r.copies(chunk)
	if failed != nil {
		r.reopen(copies)
		return failed
	}
	for range renewRounds {
		gone, err := r.renewOnce(ctx, copies)
		if err != nil {
			return err
		}
		if len(gone) == 0 {
			return nil
		}
		for _, i := range gone {
			r.answers[i], r.left[i] = dedup.Answer{}, unread
		}
		err = r.decide(ctx, gone)
		if copies = r.copies(gone); err != nil {
			r.reopen(copies)
			return err
		}
	}
	r.reopen(copies)
	return errGone
}

// copies lists the claims that others own, and that renew these.
func (r *round) copies(of []int32) (copies []int32) {
	for _, i := range of {
		if a := &r.answers[i]; a.Outcome == dedup.Exists &&
			r.claims[i].Renews(r.scope.scope, a.Owner) {
			copies = append(copies, i)
		}
	}
	return copies
}

// reopen leaves claims undecided that may not have been renewed.
func (r *round) reopen(claims []int32) {
	for _, i := range claims {
		r.answers[i] = dedup.Answer{}
	}
}

// renewOnce returns which of the claims had gone.
func (r *round) renewOnce(ctx context.Context, copies []int32) (gone []int32, err error) {
	defer func() {
		if err != nil {
			r.reopen(copies)
		}
	}()
	var unknown, due []int32
	for _, i := range copies {
		if r.left[i] == unread {
			unknown = append(unknown, i)
		}
	}
	if len(unknown) > 0 {
		if err := r.request(ctx, unknown, r.read); err != nil {
			return nil, err
		}
	}
	for _, i := range copies {
		switch left := time.Duration(r.left[i]) * time.Second; {
		case r.left[i] == unread:
			gone = append(gone, i)
		case left <= r.scope.scope.DueAt():
			due = append(due, i)
		}
	}
	refused, err := r.extend(ctx, due)
	return append(gone, refused...), err
}

// extend renews claims of which the owners are known. All go in one batch, which is refused as a
// whole if one has gone; then each goes by itself.
func (r *round) extend(ctx context.Context, due []int32) (refused []int32, err error) {
	if len(due) == 0 {
		return nil, nil
	}
	applied := false
	err = r.request(ctx, due, func(ctx context.Context, due []int32) (err error) {
		applied, err = r.update(ctx, due)
		return err
	})
	if applied {
		crashpoint.At("bucket-renewed")
	}
	switch {
	case err != nil || applied:
		return nil, err
	case len(due) == 1:
		return due, nil
	}
	for i := range due {
		one, err := r.extend(ctx, due[i:i+1])
		if err != nil {
			return nil, err
		}
		refused = append(refused, one...)
	}
	return refused, nil
}

// update sends one conditional statement, or a batch.
func (r *round) update(ctx context.Context, due []int32) (applied bool, err error) {
	size := paddedSize(len(due))
	values := make([]any, 0, 4*size)
	for i := range size {
		at := due[min(i, len(due)-1)]
		a, id := &r.answers[at], blob(r.claims[at].ID)
		owner := cell(appendOwner(nil, &dedup.Claim{Owner: a.Owner, Fingerprint: a.Fingerprint},
			a.ClaimedAt))
		values = append(values, &owner, r.bucket, &id, &owner)
	}
	statement := r.scope.renewing
	if size > 1 {
		statement = batchOf(statement, size)
	}
	query := r.store.conditional(ctx, statement, values...).
		RoutingKey(r.scope.routingKey(r.bucket))
	return r.scanExisting(query.Iter(), nil, true) // of none it takes the owner
}
