package claimlog

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/kdedup/kdedup/internal/pause"
)

// fakeNet is the network between processes, and who they take for members, as a test tells.
type fakeNet struct {
	mu      sync.Mutex
	at      map[string]*fakeNode         // by address
	members map[string]map[uint64]Member // by group
	changed chan struct{}

	// what becomes of a request; nil: it arrives, and so does the answer
	befalls func(from, to string) journey
}

// journey is what becomes of a request.
type journey struct {
	lost, answerLost bool
	doubled          bool          // it arrives twice
	late             time.Duration // before it arrives
}

var errNet = errors.New("connection reset")

func newFakeNet() *fakeNet {
	return &fakeNet{at: make(map[string]*fakeNode), members: make(map[string]map[uint64]Member),
		changed: make(chan struct{})}
}

// fakeNode is a process in the network. A new process may get the address of another one.
type fakeNode struct {
	net     *fakeNet
	address string
	life    context.Context
	stop    context.CancelFunc
	tasks   sync.WaitGroup

	answer func(context.Context, []byte) []byte
}

func (n *fakeNet) node(address string) *fakeNode {
	ctx, cancel := context.WithCancel(context.Background())
	return &fakeNode{net: n, address: address, life: ctx, stop: cancel}
}

// Join implements Network.
func (f *fakeNode) Join(
	ctx context.Context, group string, self Member, changed func([]Member),
) error {
	n := f.net
	n.change(func() {
		if n.members[group] == nil {
			n.members[group] = make(map[uint64]Member)
		}
		n.members[group][self.Process] = self
	})
	for {
		n.mu.Lock()
		var all []Member
		for _, m := range n.members[group] {
			all = append(all, m)
		}
		next := n.changed
		n.mu.Unlock()
		changed(all)
		select {
		case <-next:
		case <-ctx.Done():
			n.change(func() { delete(n.members[group], self.Process) })
			return nil
		}
	}
}

func (n *fakeNet) change(do func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	do()
	close(n.changed)
	n.changed = make(chan struct{})
}

// Serve implements Network.
func (f *fakeNode) Serve(answer func(context.Context, []byte) []byte) {
	f.net.mu.Lock()
	defer f.net.mu.Unlock()
	f.answer = answer
	f.net.at[f.address] = f
}

// Close implements Network.
func (f *fakeNode) Close() error {
	f.net.mu.Lock()
	if f.net.at[f.address] == f {
		delete(f.net.at, f.address)
	}
	f.stop()
	f.net.mu.Unlock()
	f.tasks.Wait()
	return nil
}

// Ask implements Network.
func (f *fakeNode) Ask(ctx context.Context, address string, request []byte) ([]byte, error) {
	n := f.net
	n.mu.Lock()
	to := n.at[address]
	var fate journey
	if n.befalls != nil {
		fate = n.befalls(f.address, address)
	}
	if to == nil || to.life.Err() != nil || fate.lost {
		n.mu.Unlock()
		return nil, errNet
	}
	answers := make(chan []byte, 2)
	times := 1
	if fate.doubled {
		times = 2
	}
	request = bytes.Clone(request)
	for range times {
		to.tasks.Go(func() {
			here, cancel := context.WithCancel(to.life)
			defer cancel()
			defer context.AfterFunc(ctx, cancel)()
			if fate.late > 0 {
				pause.For(to.life, fate.late) // also if nobody waits any more
			}
			answers <- to.answer(here, slices.Clone(request))
		})
	}
	n.mu.Unlock()
	select {
	case answer := <-answers:
		if fate.answerLost {
			return nil, errNet
		}
		return answer, nil
	case <-to.life.Done():
		return nil, errNet
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}
