package consumer

import (
	"context"
	"sync"
	"time"

	"github.com/kdedup/kdedup/internal/pause"
)

// lagWatch compares the committed offsets with the ends of the assigned partitions, also while the
// lane is blocked and polls nothing: that is when the lag is of interest.
type lagWatch struct {
	member *member
	cancel context.CancelFunc
	done   sync.WaitGroup
}

const lagInterval = 5 * time.Second

func watchLag(m *member) *lagWatch {
	ctx, cancel := context.WithCancel(context.Background())
	w := &lagWatch{member: m, cancel: cancel}
	w.done.Go(func() {
		pause.Every(ctx, lagInterval, func() { w.update(ctx) })
	})
	return w
}

// stop ends the watch and takes its series away.
func (w *lagWatch) stop() {
	w.cancel()
	w.done.Wait()
	for _, p := range w.member.owned() {
		w.member.opts.Metrics.forgetPartition(p)
	}
}

// update leaves the old values where the broker does not answer.
func (w *lagWatch) update(ctx context.Context) {
	partitions := w.member.owned()
	if len(partitions) == 0 {
		return
	}
	bounds, err := w.member.client.Bounds(ctx)
	if err != nil {
		return
	}
	committed := w.member.client.Committed()
	for _, p := range partitions {
		log, ok := bounds[p]
		if !ok {
			continue
		}
		at, _ := w.member.position(committed, p)
		at = max(log.First, at)
		w.member.noteLag(p, at, max(log.End-at, 0))
		w.member.noteHidden(p, log, time.Now())
	}
	w.member.warnOfHidden()
	w.member.wakeForFences(committed)
}

// position is the group's offset of a partition as this session has it: from when its fence was
// read, and after its own commits. Before, the client may know it. It is not known of one that came
// just now.
func (m *member) position(client Offsets, partition int32) (at int64, known bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if p := m.partitions[partition]; p != nil && p.done != nowhere {
		return p.done, true
	}
	offset, known := client[partition]
	return offset.Offset, known
}
