package kafkalog

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/dedup/claimlog"
)

// topicLog is a claim log in a topic.
type topicLog struct {
	topic      string
	id         kadm.TopicID
	partitions int
	retention  atomic.Int64 // nanoseconds; it may change
	client     *kgo.Client
	admin      *kadm.Client
	say        *slog.Logger
	failed     chan error // holds the first error that the client does not fix
}

var _ claimlog.Log = (*topicLog)(nil)

func (t *topicLog) ID() string               { return t.id.String() }
func (t *topicLog) Shards() int              { return t.partitions }
func (t *topicLog) Retention() time.Duration { return time.Duration(t.retention.Load()) }

func (t *topicLog) Close() error {
	t.client.Close()
	return nil
}

// Append implements claimlog.Log. The topic keeps all blocks for the same time.
func (t *topicLog) Append(shard int, block []byte, _ time.Duration, done func(error)) {
	t.client.Produce(context.Background(), &kgo.Record{Topic: t.topic, Partition: int32(shard),
		Value: block},
		func(_ *kgo.Record, err error) {
			if stays(err) {
				t.fail(fmt.Errorf("append to %s: %w", t.topic, err))
			}
			done(err)
		})
}

// stays tells of errors that a client may keep for as long as it lives: it asks once for a producer
// ID, and every later block has the answer of that.
func stays(err error) bool {
	for _, fixed := range []error{nil, kgo.ErrRecordTimeout, kgo.ErrRecordRetries,
		kgo.ErrClientClosed, context.Canceled, context.DeadlineExceeded} {
		if errors.Is(err, fixed) {
			return false
		}
	}
	return true
}

// fail ends the reading, so that the log is opened again, with another client.
func (t *topicLog) fail(err error) {
	select {
	case t.failed <- err:
	default:
	}
}

// Spans implements claimlog.Log. The end is the high watermark, below which every answered block
// is; a new leader does not tell it before it knows (KIP-207).
func (t *topicLog) Spans(ctx context.Context, read []claimlog.Position) ([]claimlog.Span, error) {
	if err := t.same(ctx); err != nil {
		return nil, err
	}
	starts, err := t.admin.ListStartOffsets(ctx, t.topic)
	if err == nil {
		err = starts.Error()
	}
	if err != nil {
		return nil, fmt.Errorf("list the first offsets of %s: %w", t.topic, err)
	}
	ends, err := t.admin.ListEndOffsets(ctx, t.topic)
	if err == nil {
		err = ends.Error()
	}
	if err != nil {
		return nil, fmt.Errorf("list the last offsets of %s: %w", t.topic, err)
	}
	spans := make([]claimlog.Span, len(read))
	known := make(map[int32]claimlog.Position)
	for i := range spans {
		first, _ := starts.Lookup(t.topic, int32(i))
		end, found := ends.Lookup(t.topic, int32(i))
		if !found {
			return nil, fmt.Errorf("topic %s: partition %d is missing", t.topic, i)
		}
		spans[i] = claimlog.Span{First: first.Offset, End: end.Offset}
		if read[i].Next > first.Offset {
			known[int32(i)] = read[i]
		}
	}
	return spans, t.holds(ctx, known)
}

// same returns ErrCut if the topic was deleted and made again since it was opened.
func (t *topicLog) same(ctx context.Context) error {
	detail, err := topicDetail(ctx, t.admin, t.topic)
	if err != nil {
		return fmt.Errorf("topic %s: %w", t.topic, err)
	}
	if detail.ID != t.id {
		return errRecreated(t.topic)
	}
	return nil
}

// holds returns ErrCut unless the partitions have all that was read up to these positions, as it
// was. Two logs that have a record of an epoch in common have all before it in common, too; so it
// is enough that the epoch of the last record which was read goes on at least to that record.
func (t *topicLog) holds(ctx context.Context, read map[int32]claimlog.Position) error {
	var request kadm.OffsetForLeaderEpochRequest
	for partition, p := range read {
		if p.Epoch >= 0 {
			request.Add(t.topic, partition, p.Epoch)
		}
	}
	if len(request) == 0 {
		return nil
	}
	answers, err := t.admin.OffsetForLeaderEpoch(ctx, request)
	if err != nil {
		return fmt.Errorf("compare epochs of %s: %w", t.topic, err)
	}
	for partition, p := range read {
		if p.Epoch < 0 {
			continue
		}
		answer, found := answers[t.topic][partition]
		if !found || answer.Err != nil {
			return fmt.Errorf("compare epochs of %s: partition %d: %w", t.topic, partition,
				errors.Join(answer.Err, errUnanswered))
		}
		if answer.LeaderEpoch != p.Epoch || answer.EndOffset < p.Next {
			return fmt.Errorf("%w: partition %d of %s was read up to offset %d in epoch %d, and "+
				"has epoch %d up to %d",
				claimlog.ErrCut, partition, t.topic, p.Next, p.Epoch, answer.LeaderEpoch,
				answer.EndOffset)
		}
	}
	return nil
}

var errUnanswered = errors.New("the broker did not tell")
