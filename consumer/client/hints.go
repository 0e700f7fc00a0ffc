package client

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/consumer"
	"github.com/kdedup/kdedup/internal/crashpoint"
	"github.com/kdedup/kdedup/internal/pause"
)

// hints are offsets on the cluster of the input, of a group that is on that of the output. Whoever
// looks at the lag there finds the group as it was a moment ago. No session believes them: they say
// that there were fences, should the fence topic be lost.
type hints struct {
	admin *kadm.Client // of the input's cluster
	group string
	input string
	mark  string
	log   *slog.Logger

	mu    sync.Mutex
	at    consumer.Offsets // the latest
	fresh map[int32]bool   // those that are not committed yet
	told  error            // the last error in the log

	ctx    context.Context
	cancel context.CancelFunc
	done   sync.WaitGroup
}

const (
	hintInterval = time.Second
	// hintsAgain is well below offsets.retention.minutes, after which brokers forget the offsets of
	// a group without members.
	hintsAgain  = time.Hour
	hintTimeout = 2 * time.Second
	lastTimeout = 5 * time.Second // of those at the end, which do not come again
)

func newHints(admin *kadm.Client, opts *Options, mark string) *hints {
	h := &hints{admin: admin, group: opts.ConsumerGroup, input: opts.Input, mark: mark,
		log: opts.Logger, at: make(consumer.Offsets), fresh: make(map[int32]bool)}
	h.ctx, h.cancel = context.WithCancel(context.Background())
	h.done.Go(func() {
		again := time.Now()
		pause.Every(h.ctx, hintInterval, func() {
			if time.Since(again) > hintsAgain {
				h.refresh()
				again = time.Now()
			}
			h.commit(hintTimeout)
		})
	})
	return h
}

// note is told up to where a partition is handled.
func (h *hints) note(partition int32, at kgo.EpochOffset) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.at[partition], h.fresh[partition] = at, true
}

func (h *hints) refresh() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for p := range h.at {
		h.fresh[p] = true
	}
}

// forget drops what another member goes on with.
func (h *hints) forget(partitions []int32) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, p := range partitions {
		delete(h.at, p)
		delete(h.fresh, p)
	}
}

// commit sends what is new, once. What fails comes with the next ones.
func (h *hints) commit(timeout time.Duration) {
	h.mu.Lock()
	sent := make(consumer.Offsets)
	for p := range h.fresh {
		sent[p] = h.at[p]
	}
	h.mu.Unlock()
	if !h.send(sent, timeout) {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	maps.DeleteFunc(h.fresh, func(p int32, _ bool) bool {
		at, sent := sent[p]
		return sent && at == h.at[p]
	})
}

// send reports whether the cluster of the input has taken the offsets.
func (h *hints) send(sent consumer.Offsets, timeout time.Duration) bool {
	if len(sent) == 0 {
		return true
	}
	offsets := make(kadm.Offsets)
	for p, at := range sent {
		offsets.Add(kadm.Offset{Topic: h.input, Partition: p, At: at.Offset,
			LeaderEpoch: at.Epoch, Metadata: h.mark})
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(h.ctx), timeout)
	defer cancel()
	crashpoint.At("hints-unsent")
	err := h.admin.CommitAllOffsets(ctx, h.group, offsets)
	crashpoint.At("hints-answered")
	h.mu.Lock()
	defer h.mu.Unlock()
	h.tell(err)
	return err == nil
}

func (h *hints) tell(err error) {
	switch {
	case err == nil || h.told != nil && err.Error() == h.told.Error():
	case errors.Is(err, kerr.UnknownMemberID):
		h.log.Error("the consumer group has members on the cluster of the input, too: if they "+
			"are kdedup's, with delivery at_least_once, both forward each record: stop them",
			"group", h.group)
	default:
		h.log.Warn("cannot tell the cluster of the input up to where it is handled; nothing "+
			"depends on that but the lag that others see", "group", h.group, "error", err)
	}
	h.told = err
}

// stop tells what is left, once.
func (h *hints) stop() {
	h.cancel()
	h.done.Wait()
	h.commit(lastTimeout)
}
