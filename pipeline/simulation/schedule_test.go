//go:build !race

package simulation

import (
	"cmp"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing/synctest"
	"time"
)

// schedule lets one goroutine of the product go on at a time.
type schedule struct {
	mu      sync.Mutex
	waiting []*call
}

// call is one that waits for the scheduler's word.
type call struct {
	process *process
	key     string // of calls that may wait at the same time, no two have the same
	ready   func() bool
	goOn    chan struct{}
}

// pause waits until the scheduler lets the call go on, not before ready. A process that was killed
// does not come back from it.
func (p *process) pause(key string, ready func() bool) {
	if !p.wait(key, ready) {
		runtime.Goexit()
	}
}

// wait is pause for calls that clean up: it returns false in a process that was killed.
func (p *process) wait(key string, ready func() bool) (alive bool) {
	c := &call{p, fmt.Sprintf("%03d %s", p.slot, key), ready, make(chan struct{})}
	s := &p.w.schedule
	s.mu.Lock()
	if p.killed {
		s.mu.Unlock()
		return false
	}
	s.waiting = append(s.waiting, c)
	s.mu.Unlock()
	<-c.goOn
	return !p.killed
}

// runCall lets one call go on, and returns when all goroutines wait again.
func (w *world) runCall() bool {
	var ready []*call
	for _, c := range w.waiting {
		if (c.process.paused <= w.step || w.draining) && (c.ready == nil || c.ready()) {
			ready = append(ready, c)
		}
	}
	if len(ready) == 0 {
		return false
	}
	slices.SortFunc(ready, func(a, b *call) int { return cmp.Compare(a.key, b.key) })
	for i := 1; i < len(ready); i++ {
		if ready[i].key == ready[i-1].key {
			w.failf("two calls are %q: the seed would not replay", ready[i].key)
		}
	}
	next := ready[w.dice.n(len(ready))]
	if w.calls {
		w.trace(-1, "%s, one of %d", next.key, len(ready))
	}
	w.resume(next)
	w.settle()
	return true
}

func (w *world) resume(c *call) {
	w.waiting = slices.DeleteFunc(w.waiting, func(o *call) bool { return o == c })
	close(c.goOn)
}

// moment is how long a step takes. No multiple of it that is likely is a multiple of the product's
// times: of two timers that fire at once, chance would tell which goroutine goes on.
const moment = 1037 * time.Microsecond

// settle waits until every goroutine does, and lets a moment pass.
func (w *world) settle() {
	w.scheduling = false
	w.publish()
	synctest.Wait()
	w.publish()
	time.Sleep(moment)
	synctest.Wait()
	w.scheduling = true
	if w.violated != "" {
		panic(violation(w.violated))
	}
}

// publish has goroutines that a timer wakes see what the world has done: they lock before they
// look.
func (w *world) publish() {
	w.mu.Lock()
	defer w.mu.Unlock()
}

// quiet waits until the goroutines that the world has just woken wait again: they act alone, too.
func (w *world) quiet() {
	if w.scheduling {
		w.scheduling = false
		w.publish()
		synctest.Wait()
		w.scheduling = true
	}
}

// violation is what a check panics with.
type violation string

// failf ends the run: at once if the world itself finds the mistake, or else when the goroutine has
// ended that made it.
func (w *world) failf(format string, args ...any) {
	w.mu.Lock()
	if w.violated == "" {
		w.violated = fmt.Sprintf(format, args...)
	}
	w.mu.Unlock()
	if w.scheduling {
		panic(violation(w.violated))
	}
	runtime.Goexit()
}
