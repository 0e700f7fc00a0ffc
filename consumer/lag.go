package consumer

import (
	"context"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
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
	w.done.Go(func() { w.run(ctx) })
	return w
}

// stop ends the watch and takes its series away.
func (w *lagWatch) stop() {
	w.cancel()
	w.done.Wait()
	for _, p := range w.member.owned() {
		w.member.opts.Metrics.forgetLag(p)
	}
}

func (w *lagWatch) run(ctx context.Context) {
	tick := time.NewTicker(lagInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			w.update(ctx)
		}
	}
}

// update leaves the old values where the broker does not answer.
func (w *lagWatch) update(ctx context.Context) {
	partitions := w.member.owned()
	if len(partitions) == 0 {
		return
	}
	topic := w.member.opts.Input
	admin := kadm.NewClient(w.member.client)
	ends, err := admin.ListCommittedOffsets(ctx, topic)
	if err != nil {
		return
	}
	starts, err := admin.ListStartOffsets(ctx, topic)
	if err != nil {
		return
	}
	committed := w.member.client.CommittedOffsets()[topic]
	for _, p := range partitions {
		end, okEnd := ends.Lookup(topic, p)
		start, okStart := starts.Lookup(topic, p)
		if okEnd && okStart && end.Err == nil && start.Err == nil {
			at, _ := w.member.position(committed, p)
			at = max(start.Offset, at)
			w.member.noteLag(p, at, max(end.Offset-at, 0))
		}
	}
}

// position is the group's offset of a partition as this session has it: the client knows that from when the partition came, and
// after its own commits. It is not known of one that came just now.
func (m *member) position(client map[int32]kgo.EpochOffset, partition int32) (at int64, known bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if at, known = m.committed[partition]; known {
		return at, true
	}
	offset, known := client[partition]
	return offset.Offset, known
}
