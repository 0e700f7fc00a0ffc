package logreader

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

const (
	pollRecords = 10_000

	// fetchBytes bounds the memory: so much of each fetch under way, before it is decompressed.
	fetchBytes        = 8 << 20
	concurrentFetches = 3

	// silence is how long nothing may arrive before the reader asks whether anything is left.
	silence = time.Second
)

// ErrCut says that the log is no longer what it was when it was described: it was truncated, or the
// topic was deleted or recreated.
var ErrCut = errors.New("the log was cut, or the topic replaced, while it was read; try again")

// Read calls each with the records of the log, a part of one partition at a time, in its order,
// until all partitions are read to their ends. Records of aborted transactions and markers are left
// out. Records that retention deletes meanwhile are skipped. The first error ends it, each's too.
// The connection says at least where the brokers are.
func Read(
	ctx context.Context, connection []kgo.Opt, log Log, each func([]*kgo.Record) error,
) error {
	return (&reader{log: log, each: each}).run(ctx, connection)
}

// ReadAll is like Read, and hands out what no consumer is to see, too: markers, and the records of
// aborted and open transactions. An offset that it leaves out is one that the log does not have.
func ReadAll(
	ctx context.Context, connection []kgo.Opt, log Log, each func([]*kgo.Record) error,
) error {
	return (&reader{log: log, each: each, all: true}).run(ctx, connection)
}

func (r *reader) run(ctx context.Context, connection []kgo.Opt) error {
	log := r.log
	r.open = make(map[int32]*position)
	offsets := make(map[int32]kgo.Offset)
	for p, part := range log.Partitions {
		if part.Start < part.End {
			r.open[p] = &position{next: part.Start, end: part.End}
			offsets[p] = kgo.NewOffset().At(part.Start)
		}
	}
	if len(offsets) == 0 {
		return nil
	}
	client, err := kgo.NewClient(append(connection[:len(connection):len(connection)],
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{log.Topic: offsets}),
		kgo.FetchIsolationLevel(r.isolation()),
		kgo.KeepControlRecords(), // the end may be a marker
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.FetchMaxBytes(fetchBytes), kgo.FetchMaxPartitionBytes(fetchBytes/4),
		kgo.MaxConcurrentFetches(concurrentFetches),
	)...)
	if err != nil {
		return fmt.Errorf("read %s: %w", log.Topic, err)
	}
	defer client.Close()
	r.client = client
	for len(r.open) > 0 {
		if err := r.turn(ctx); err != nil {
			return fmt.Errorf("read %s: %w", log.Topic, err)
		}
	}
	return nil
}

type reader struct {
	client *kgo.Client
	log    Log
	each   func([]*kgo.Record) error
	all    bool                // see ReadAll
	open   map[int32]*position // partitions that are not at their end
}

func (r *reader) isolation() kgo.IsolationLevel {
	if r.all {
		return kgo.ReadUncommitted()
	}
	return kgo.ReadCommitted()
}

// position is where the reader stands in a partition.
type position struct{ next, end int64 }

// turn takes what one poll brings; after a silence it asks for what polls do not tell.
func (r *reader) turn(ctx context.Context) error {
	waiting, cancel := context.WithTimeout(ctx, silence)
	defer cancel()
	fetches := r.client.PollRecords(waiting, pollRecords)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err := fetchError(waiting, fetches); err != nil {
		return err
	}
	if fetches.NumRecords() == 0 {
		return r.skipInvisible(ctx)
	}
	var failed error
	fetches.EachTopic(func(t kgo.FetchTopic) {
		if t.TopicID != r.log.TopicID {
			failed = ErrCut
			return
		}
		for _, p := range t.Partitions {
			if failed == nil && len(p.Records) > 0 {
				failed = r.take(p.Partition, p.Records)
			}
		}
	})
	return failed
}

// fetchError joins what the client could not fix; the end of the wait is none.
func fetchError(waiting context.Context, fetches kgo.Fetches) error {
	var errs []error
	fetches.EachError(func(_ string, partition int32, err error) {
		switch {
		case waiting.Err() != nil && errors.Is(err, waiting.Err()):
		case errors.As(err, new(*kgo.ErrDataLoss)):
			errs = append(errs, fmt.Errorf("partition %d: %w: %w", partition, ErrCut, err))
		default:
			errs = append(errs, fmt.Errorf("partition %d: %w", partition, err))
		}
	})
	return errors.Join(errs...)
}

// take hands on the records below the end.
func (r *reader) take(partition int32, records []*kgo.Record) error {
	at, open := r.open[partition]
	if !open {
		return nil
	}
	at.next = records[len(records)-1].Offset + 1
	visible := records[:0]
	for _, record := range records {
		if record.Offset < at.end && (r.all || !record.Attrs.IsControl()) {
			visible = append(visible, record)
		}
	}
	if len(visible) > 0 {
		if err := r.each(visible); err != nil {
			return err
		}
	}
	if at.next >= at.end {
		r.finish(partition)
	}
	return nil
}

func (r *reader) finish(partition int32) {
	delete(r.open, partition)
	r.client.RemoveConsumePartitions(map[string][]int32{r.log.Topic: {partition}})
}
