package consumer

import (
	"sync"

	"github.com/twmb/franz-go/pkg/kgo"
)

// acks collects the promises of produced records. It keeps the first error: the client would
// commit a transaction of which only some records were written.
type acks struct {
	mu  sync.Mutex
	err error
}

func (a *acks) promise(_ *kgo.Record, err error) {
	if err == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.err == nil {
		a.err = err
	}
}

// take returns the first error since the last call.
func (a *acks) take() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	err := a.err
	a.err = nil
	return err
}
