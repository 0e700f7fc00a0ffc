package kafkalog

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"golang.org/x/sync/errgroup"

	"github.com/kdedup/kdedup/dedup/claimlog"
)

// Read implements claimlog.Log. What it shows is below the high watermark: all replicas in sync
// have it.
func (t *topicLog) Read(
	ctx context.Context, from []claimlog.Position, apply func([]claimlog.Entry) error,
) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return t.watch(ctx) })
	group.Go(func() error { return t.read(ctx, from, apply) })
	return group.Wait()
}

// watch returns the first error that the client does not fix, or what the topic must not be and
// has become.
func (t *topicLog) watch(ctx context.Context) error {
	tick := time.NewTicker(settingsEvery)
	defer tick.Stop()
	var told error
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case err := <-t.failed:
			return err
		case <-tick.C:
		}
		asking, cancel := context.WithTimeout(ctx, requestTimeout)
		err := t.describe(asking)
		cancel()
		switch {
		case errors.Is(err, errSetting) || errors.Is(err, claimlog.ErrCut):
			return fmt.Errorf("topic %s: %w", t.topic, err)
		case err != nil && ctx.Err() == nil && (told == nil || told.Error() != err.Error()):
			t.say.Warn("what the topic of the claim log is now cannot be asked", "topic", t.topic,
				"error", err)
			told = err
		}
	}
}

func (t *topicLog) read(
	ctx context.Context, from []claimlog.Position, apply func([]claimlog.Entry) error,
) error {
	offsets := make(map[int32]kgo.Offset, len(from))
	for partition, p := range from {
		if p.Left() {
			continue
		}
		offsets[int32(partition)] = kgo.NewOffset().At(p.Next).WithEpoch(p.Epoch)
	}
	t.client.AddConsumePartitions(map[string]map[int32]kgo.Offset{t.topic: offsets})
	r := &reader{log: t, at: append([]claimlog.Position(nil), from...)}
	for {
		fetches := t.client.PollFetches(ctx)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err := fetchError(t.topic, fetches); err != nil {
			return err
		}
		if err := r.take(ctx, fetches); err != nil {
			return err
		}
		if len(r.entries) == 0 {
			continue
		}
		if err := apply(r.entries); err != nil {
			return err
		}
	}
}

// fetchError joins what the client could not fix.
func fetchError(topic string, fetches kgo.Fetches) (err error) {
	fetches.EachError(func(_ string, partition int32, one error) {
		if errors.As(one, new(*kgo.ErrDataLoss)) {
			one = fmt.Errorf("%w: %w", claimlog.ErrCut, one)
		}
		err = errors.Join(err, fmt.Errorf("read partition %d of %s: %w", partition, topic, one))
	})
	return err
}

// reader turns records into entries.
type reader struct {
	log     *topicLog
	at      []claimlog.Position
	entries []claimlog.Entry // of one poll
}

// take asks about what was read before, when the first record of another leader comes: the log may
// have been cut in between. That must be known before the record is shown, and the client's own
// notice may come later.
func (r *reader) take(ctx context.Context, fetches kgo.Fetches) error {
	r.entries = r.entries[:0]
	doubtful := make(map[int32]claimlog.Position)
	var err error
	fetches.EachTopic(func(topic kgo.FetchTopic) {
		if topic.TopicID != r.log.id && topic.TopicID != [16]byte{} {
			err = errRecreated(r.log.topic)
			return
		}
		for _, p := range topic.Partitions {
			r.takePartition(p, doubtful)
		}
	})
	if err != nil {
		return err
	}
	return r.log.holds(ctx, doubtful)
}

// takePartition takes also what is no block: the end of a transaction, which somebody has written
// to the topic, has a place, too.
func (r *reader) takePartition(p kgo.FetchPartition, doubtful map[int32]claimlog.Position) {
	at := &r.at[p.Partition]
	for _, record := range p.Records {
		if _, already := doubtful[p.Partition]; record.LeaderEpoch != at.Epoch && at.Epoch >= 0 &&
			!already {
			doubtful[p.Partition] = *at
		}
		at.Next, at.Epoch = record.Offset+1, record.LeaderEpoch
		r.entries = append(r.entries, claimlog.Entry{
			Shard: int(p.Partition), At: record.Offset, Epoch: record.LeaderEpoch,
			Time: record.Timestamp.UnixMilli(), Block: blockOf(record),
		})
	}
}

func blockOf(record *kgo.Record) []byte {
	if record.Attrs.IsControl() {
		return nil
	}
	return record.Value
}
