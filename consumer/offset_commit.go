package consumer

import (
	"context"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// offsetCommit is a commit of offsets that is under way. A nil one has succeeded.
type offsetCommit struct {
	done   chan struct{}
	err    error           // after done
	failed context.Context // ends with err, if there is one
	fail   context.CancelCauseFunc
}

// commitOffsets sends the offsets of a batch, for the generation that the member is in now. The client lets no rebalance begin
// before the answer.
func (m *member) commitOffsets(ctx context.Context, b *Batch) *offsetCommit {
	offsets := make(map[int32]kgo.EpochOffset, len(b.Spans))
	for _, s := range b.Spans {
		offsets[s.Partition] = kgo.EpochOffset{Epoch: s.LeaderEpoch, Offset: s.Next}
	}
	c := &offsetCommit{done: make(chan struct{})}
	c.failed, c.fail = context.WithCancelCause(context.Background())
	m.client.CommitOffsets(ctx, map[string]map[int32]kgo.EpochOffset{m.opts.Input: offsets},
		func(_ *kgo.Client, _ *kmsg.OffsetCommitRequest, response *kmsg.OffsetCommitResponse, err error) {
			c.end(errors.Join(append(commitErrors(response), err)...))
		})
	return c
}

func (c *offsetCommit) end(err error) {
	if err != nil {
		c.err = fmt.Errorf("commit offsets: %w", inputError(err))
		c.fail(c.err)
	}
	close(c.done)
}

// wait returns what became of the commit.
func (c *offsetCommit) wait() error {
	if c == nil {
		return nil
	}
	<-c.done
	return c.err
}

// unlessFailed returns a context that ends with parent, or when the commit fails.
func (c *offsetCommit) unlessFailed(parent context.Context) (context.Context, context.CancelFunc) {
	if c == nil {
		return context.WithCancel(parent)
	}
	return endingWith(parent, c.failed)
}

func commitErrors(response *kmsg.OffsetCommitResponse) (errs []error) {
	if response == nil {
		return nil
	}
	for _, t := range response.Topics {
		for _, p := range t.Partitions {
			if err := kerr.ErrorForCode(p.ErrorCode); err != nil {
				errs = append(errs, fmt.Errorf("partition %d: %w", p.Partition, err))
			}
		}
	}
	return errs
}
