package dedup

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/kdedup/kdedup/internal/pause"
)

// Watch asks a store's server again and again whether it still is what its Open has checked: what
// somebody changes while the store is open breaks the promise as much as what he had changed
// before. The store answers no claim and no look-up while Err is an error.
type Watch struct {
	problem atomic.Pointer[error]
	stop    context.CancelFunc
	asking  sync.WaitGroup
}

// NewWatch starts a goroutine that Close ends. It asks in equal pauses, and gives each question the
// time of one. ask tells what is wrong, or nil, and an error if it could not find out: then nothing
// changes, since claims fail by themselves where the server does not answer.
func NewWatch(every time.Duration, ask func(context.Context) (problem, err error)) *Watch {
	w := &Watch{}
	ctx, stop := context.WithCancel(context.Background())
	w.stop = stop
	w.asking.Go(func() {
		pause.Every(ctx, every, func() { w.once(ctx, every, ask) })
	})
	return w
}

func (w *Watch) once(
	ctx context.Context, within time.Duration, ask func(context.Context) (problem, err error),
) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	if problem, err := ask(ctx); err == nil {
		w.problem.Store(&problem)
	}
}

// Err is why the server cannot keep the promise, as far as it has said so.
func (w *Watch) Err() error {
	if problem := w.problem.Load(); problem != nil {
		return *problem
	}
	return nil
}

// Close returns when no question is under way.
func (w *Watch) Close() {
	w.stop()
	w.asking.Wait()
}
