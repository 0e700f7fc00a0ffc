package idempotency

import (
	"context"
	"sync"
)

// turns let the callers of one key within this process ask the store together. Two hundred callers
// that wait for one execution would else be two hundred times at the store for each look, and at
// the one record on which all of them contend.
//
// A call of the store begins after all callers that take part in it have come, and so its answer is
// as new for each of them as that of a call of its own.
type turns struct {
	mu   sync.Mutex
	keys map[Key]*turn
}

func newTurns() *turns { return &turns{keys: make(map[Key]*turn)} }

// turn is a key that callers ask about: a call is under way, and those who came since wait for the
// next one.
type turn struct {
	waiting int // for next
	next    *call
}

// call is one of the store.
type call struct {
	leads   chan struct{} // holds one token, for whoever makes the call once it is its turn
	done    chan struct{}
	current Record
	err     error
	// abandoned says that its caller has given up: nothing was learnt of the store.
	abandoned bool
}

func newCall() *call { return &call{leads: make(chan struct{}, 1), done: make(chan struct{})} }

// take asks the store by a call that begins now or later. The caller that leads makes it, and hears
// what ask said; the others hear of the record only.
func (t *turns) take(
	ctx context.Context, key Key, ask func() (current Record, done bool, err error),
) (current Record, done bool, err error) {
	for {
		c := t.join(key)
		select {
		case <-c.leads:
			return t.lead(ctx, key, c, ask)
		case <-c.done:
		case <-ctx.Done():
			t.leave(key, c)
			return Record{}, false, context.Cause(ctx)
		}
		if !c.abandoned {
			return c.current, false, c.err
		}
	}
}

// join is the next call about the key. If none is under way it may be made at once.
func (t *turns) join(key Key) *call {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.keys[key]
	if now == nil {
		now = &turn{next: newCall()}
		t.keys[key] = now
		now.next.leads <- struct{}{}
	}
	now.waiting++
	return now.next
}

// leave is of a caller that waits no longer. The token stays for another one, if there is one.
func (t *turns) leave(key Key, c *call) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.keys[key]
	if now == nil || now.next != c {
		return // it has begun
	}
	if now.waiting--; now.waiting == 0 && len(c.leads) > 0 {
		delete(t.keys, key)
	}
}

// lead makes the call. Those who come from now on wait for the one after it.
func (t *turns) lead(
	ctx context.Context, key Key, c *call, ask func() (Record, bool, error),
) (current Record, done bool, err error) {
	t.mu.Lock()
	now := t.keys[key]
	now.next, now.waiting = newCall(), 0
	t.mu.Unlock()
	answered := false // it is not if ask panics
	defer func() {
		c.current, c.err, c.abandoned = current, err, !answered || err != nil && ctx.Err() != nil
		close(c.done)
		t.mu.Lock()
		defer t.mu.Unlock()
		if now.waiting == 0 {
			delete(t.keys, key)
			return
		}
		now.next.leads <- struct{}{}
	}()
	current, done, err = ask()
	answered = true
	return current, done, err
}
