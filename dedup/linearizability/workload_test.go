package linearizability_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/internal/pause"
)

const (
	clients   = 8
	longest   = 60 // claims in one call, as many calls with few as with many
	everHot   = 10 // IDs that are asked for all the time
	hot       = 40 // IDs of a turn
	turn      = 300 * time.Millisecond
	callLimit = 3 * time.Second
	mostPause = 20 * time.Millisecond // between two calls of a client
)

// workload is what clients do to one scope, and the history of it.
type workload struct {
	t        *testing.T
	sessions []dedup.Store // as of several processes
	scope    dedup.Scope
	began    time.Time
	attempts atomic.Int32
	owners   atomic.Int64

	mu         sync.Mutex
	operations []*operation
}

func (w *workload) now() int64 { return int64(time.Since(w.began)) }

func (w *workload) note(operations ...*operation) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.operations = append(w.operations, operations...)
}

// register tries again, as a process does: there are no faults yet, but maybe a busy machine.
func (w *workload) register(session dedup.Store) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), settleLimit)
	defer cancel()
	always := func(error) bool { return true }
	err := pause.Repeat(ctx, 50*time.Millisecond, always, func() error {
		return session.Register(ctx, w.scope)
	})
	if err != nil {
		w.t.Fatal(err)
	}
}

// client works until the context ends. After an error it rests, as every caller should.
func (w *workload) client(ctx context.Context, number int) {
	var left []dedup.Claim // undecided
	for ctx.Err() == nil {
		session := w.sessions[rand.IntN(len(w.sessions))]
		var ok bool
		switch p := rand.Float64(); {
		case p < 0.08:
			ok = w.lookUp(ctx, session, number, w.id())
		case p < 0.20:
			ok = w.release(ctx, session, number, releasable(w.id()))
		case len(left) > 0 && p < 0.80: // as the contract says
			left, ok = w.claim(ctx, session, number, left)
		default:
			left, ok = w.claim(ctx, session, number, w.claimsOf(number, w.ids()))
		}
		pause.For(ctx, rand.N(mostPause))
		if !ok {
			pause.For(ctx, between(20*time.Millisecond, 100*time.Millisecond))
		}
	}
}

// id is one of those that are always hot, of this turn, or of an earlier one.
func (w *workload) id() int {
	now := int(time.Since(w.began) / turn)
	switch p := rand.IntN(10); {
	case p < 2:
		return rand.IntN(everHot)
	case p < 4:
		now = max(0, now-rand.IntN(6))
	}
	return everHot + now*hot + rand.IntN(hot)
}

// releasable leaves most IDs of a turn to claims alone, which are what matters most.
func releasable(id int) int {
	if id < everHot {
		return id
	}
	return everHot + (id-everHot)&^3
}

func (w *workload) ids() []int {
	n := int(math.Exp(rand.Float64() * math.Log(longest+0.99)))
	chosen := make(map[int]bool, n)
	for range n {
		chosen[w.id()] = true
	}
	ids := make([]int, 0, n)
	for id := range chosen {
		ids = append(ids, id)
	}
	return ids
}

func (w *workload) claimsOf(client int, ids []int) []dedup.Claim {
	claims := make([]dedup.Claim, len(ids))
	for i, id := range ids {
		owner := dedup.Coordinates{TopicID: [16]byte{1}, Partition: int32(client),
			Offset: w.owners.Add(1), LeaderEpoch: 1}
		claims[i] = dedup.Claim{ID: nameOf(id), Owner: owner}
	}
	return claims
}

func nameOf(id int) dedup.ID { return dedup.ID(binary.BigEndian.AppendUint32(nil, uint32(id))) }

func idOf(name dedup.ID) int { return int(binary.BigEndian.Uint32([]byte(name))) }

// bounded is the context of one call. Some end within milliseconds. The end of the workload ends no
// call.
func bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	limit := callLimit
	if rand.IntN(30) == 0 {
		limit = rand.N(40 * time.Millisecond)
	}
	return context.WithTimeout(context.WithoutCancel(ctx), limit)
}

// claim makes one attempt for each of the claims, and returns those that are undecided.
func (w *workload) claim(
	ctx context.Context, session dedup.Store, client int, claims []dedup.Claim,
) (left []dedup.Claim, ok bool) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	scope, long := w.scope, rand.IntN(2) == 0
	if !long {
		scope.TTL = short
	}
	operations, attempts := make([]*operation, len(claims)), make([]dedup.Claim, len(claims))
	for i, c := range claims {
		attempt := w.attempts.Add(1)
		c.Fingerprint = fingerprint(attempt)
		attempts[i] = c
		operations[i] = &operation{action: claiming, id: idOf(c.ID), attempt: attempt,
			owner: c.Owner.Offset, client: client, long: long}
	}
	call := w.now()
	answers, err := session.Claim(ctx, scope, attempts)
	end := w.now()
	for i, o := range operations {
		o.call, o.end = call, end
		if answers[i].Outcome == dedup.Undecided {
			left = append(left, claims[i])
			continue
		}
		w.take(o, answers[i])
	}
	if len(left) > 0 && err == nil {
		w.t.Errorf("%d claims are undecided, and no error says why", len(left))
	}
	w.note(operations...)
	return left, err == nil
}

// take notes an answer, which must be about a claim that somebody made.
func (w *workload) take(o *operation, a dedup.Answer) {
	o.result = taken
	if a.Outcome == dedup.Applied {
		o.result = done
	}
	o.holder, o.holderOwner, o.claimedAt = int32(binary.BigEndian.Uint32(a.Fingerprint[:])),
		a.Owner.Offset, a.ClaimedAt.UnixMilli()
	if a.Fingerprint != fingerprint(o.holder) || a.Owner.TopicID != [16]byte{1} ||
		a.Owner.LeaderEpoch != 1 {
		w.t.Errorf("nobody made this claim: %+v", a)
	}
}

func fingerprint(attempt int32) dedup.Fingerprint {
	f := dedup.Fingerprint{15: 1}
	binary.BigEndian.PutUint32(f[:], uint32(attempt))
	return f
}

func (w *workload) lookUp(ctx context.Context, session dedup.Store, client, id int) bool {
	ctx, cancel := bounded(ctx)
	defer cancel()
	o := &operation{action: lookingUp, id: id, client: client, call: w.now()}
	answer, err := session.Lookup(ctx, w.scope, nameOf(id))
	o.end = w.now()
	if err == nil && answer.Outcome == dedup.Undecided {
		o.result = free
	} else if err == nil {
		w.take(o, answer)
	}
	w.note(o)
	return err == nil
}

func (w *workload) release(ctx context.Context, session dedup.Store, client, id int) bool {
	ctx, cancel := bounded(ctx)
	defer cancel()
	o := &operation{action: releasing, id: id, client: client, call: w.now()}
	err := session.Release(ctx, w.scope, nameOf(id))
	o.end = w.now()
	if err == nil {
		o.result = done
	}
	w.note(o)
	return err == nil
}

// settle asks for every ID once the faults are over, claims it and asks again: what was open has an
// outcome now.
func (w *workload) settle(ctx context.Context) error {
	ids := make(map[int]bool)
	for _, o := range w.operations {
		ids[o.id] = true
	}
	var claims []dedup.Claim
	for id := range ids {
		claims = append(claims, w.claimsOf(clients, []int{id})...)
	}
	if err := w.lookUpAll(ctx, ids); err != nil {
		return err
	}
	for len(claims) > 0 {
		left, _ := w.claim(ctx, w.sessions[0], clients, claims[:min(longest, len(claims))])
		claims = append(claims[min(longest, len(claims)):], left...)
		if ctx.Err() != nil {
			return fmt.Errorf("claims stay undecided without faults: %w", ctx.Err())
		}
	}
	if err := w.lookUpAll(ctx, ids); err != nil {
		return err
	}
	return w.findAll(ctx, slices.Collect(maps.Keys(ids)))
}

// findAll asks when the claims end.
func (w *workload) findAll(ctx context.Context, ids []int) error {
	for part := range slices.Chunk(ids, 100) {
		for !w.find(ctx, part) {
			if !pause.For(ctx, 50*time.Millisecond) {
				return fmt.Errorf("ends are not told without faults: %w", ctx.Err())
			}
		}
	}
	return nil
}

// find notes the claims that stand, and which of them end before a claim of the whole ttl would.
func (w *workload) find(ctx context.Context, ids []int) bool {
	ctx, cancel := bounded(ctx)
	defer cancel()
	names := make([]dedup.ID, len(ids))
	for i, id := range ids {
		names[i] = nameOf(id)
	}
	call := w.now()
	found, err := w.sessions[0].(finder).Find(ctx, w.scope, names)
	end := w.now()
	if err != nil {
		return false
	}
	for _, f := range found {
		o := &operation{action: lookingUp, id: idOf(f.ID), client: clients, call: call, end: end,
			short: time.Until(f.Ends) < (ttl+short)/2}
		w.take(o, f.Answer())
		w.note(o)
	}
	return true
}

// finder is the part of dedup.Exporter that is asked.
type finder interface {
	Find(ctx context.Context, scope dedup.Scope, ids []dedup.ID) ([]dedup.Standing, error)
}

// lookUpAll asks for several IDs at once: on a busy machine one after the other takes minutes.
func (w *workload) lookUpAll(ctx context.Context, ids map[int]bool) error {
	var asked errgroup.Group
	asked.SetLimit(16)
	for id := range ids {
		asked.Go(func() error {
			for failed := 1; !w.lookUp(ctx, w.sessions[0], clients, id); failed++ {
				if !pause.For(ctx, 50*time.Millisecond) {
					return fmt.Errorf("one of %d look-ups failed %d times without faults: %w",
						len(ids), failed, ctx.Err())
				}
			}
			return nil
		})
	}
	return asked.Wait()
}

func between(least, most time.Duration) time.Duration { return least + rand.N(most-least) }
