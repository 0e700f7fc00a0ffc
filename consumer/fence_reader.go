package consumer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// fenceReader finds the last committed fence of some partitions. A partition's end is not where its
// last fence is: behind it stand transaction markers, and fences of aborted transactions. So it
// reads a short window before the end, and longer ones only where that held no committed fence.
// Each step is one fetch per broker, whatever the number of partitions.
//
// The end is the high watermark, not the last stable offset. Where a transaction is open, the reader
// waits for it: its offsets may be committed while its marker is still missing here, and offsets that
// an operator sets back meanwhile would lie above the fence that can be seen.
type fenceReader struct {
	client   *kgo.Client
	topic    string
	input    string
	patience time.Duration // with transactions that do not end
	id       kadm.TopicID
	from     kadm.TopicID // of the input as it is now; zero if unknown
	found    map[int32]Fence
}

// tail is the part of one fence partition that is still to be read.
type tail struct {
	partition   int32
	leader      int32
	start       int64 // of the log
	from, until int64 // the window; from moves on with every fetch
	low         int64 // where the window began
	window      int64
}

const (
	firstWindow  = 8 // records and markers: usually one fence and its marker are enough
	growWindow   = 16
	fenceMaxWait = 500 // milliseconds that a broker waits where a transaction is open
	fenceBytes   = 256 << 10

	// The coordinator ends a dead member's transaction after its timeout, and looks every ten seconds.
	fencePatience = 4 * transactionTimeout
)

var errHanging = errors.New("a transaction on it does not end; look for it with kafka-transactions.sh find-hanging, and abort it")

// readFences returns the fences of the partitions that have one. An open transaction is waited for
// with patience; errHanging says that it did not end.
func readFences(ctx context.Context, client *kgo.Client, topic, input string, partitions []int32, patience time.Duration) (map[int32]Fence, error) {
	r := &fenceReader{client: client, topic: topic, input: input, patience: patience}
	err := r.read(ctx, partitions)
	if err == nil {
		err = r.checkOffsets()
	}
	if err != nil {
		return nil, fmt.Errorf("read fences of %s: %w", topic, err)
	}
	return r.found, nil
}

func (r *fenceReader) read(ctx context.Context, partitions []int32) error {
	ctx, cancel := context.WithTimeoutCause(ctx, r.patience, errHanging)
	defer cancel()
	r.found = make(map[int32]Fence, len(partitions))
	open, err := r.tails(ctx, partitions)
	for err == nil && len(open) > 0 {
		var left []*tail
		if left, err = r.step(ctx, open); err != nil && context.Cause(ctx) == errHanging {
			return fmt.Errorf("partition %d: %w", open[0].partition, errHanging)
		}
		open = left
	}
	return err
}

// checkOffsets refuses offsets that belong to a deleted topic of the same name. They are there if a
// batch of the old topic was committed when the new one existed, which most brokers cannot tell
// apart: records of the new topic would be skipped. Fences of a deleted topic mean nothing any more.
func (r *fenceReader) checkOffsets() error {
	committed := r.client.CommittedOffsets()[r.input]
	none := kadm.TopicID{}
	for p, fence := range r.found {
		foreign := r.from != none && fence.TopicID != none && fence.TopicID != r.from
		if !foreign {
			continue
		}
		if at, ok := committed[p]; ok && at.Offset == fence.Next() {
			return fmt.Errorf("the committed offset %d of %s[%d] is not of this topic: %w", at.Offset, r.input, p, ErrInputReplaced)
		}
		delete(r.found, p)
	}
	return nil
}

// tails looks up where each partition's log stands.
func (r *fenceReader) tails(ctx context.Context, partitions []int32) ([]*tail, error) {
	admin := kadm.NewClient(r.client)
	meta, err := admin.Metadata(ctx, r.topic, r.input)
	if err != nil {
		return nil, err
	}
	detail := meta.Topics[r.topic]
	if detail.Err != nil {
		return nil, fmt.Errorf("%w; create it with: kdedup setup -c FILE", detail.Err)
	}
	r.id, r.from = detail.ID, meta.Topics[r.input].ID
	starts, err := admin.ListStartOffsets(ctx, r.topic)
	if err != nil {
		return nil, err
	}
	ends, err := admin.ListEndOffsets(ctx, r.topic)
	if err != nil {
		return nil, err
	}
	var open []*tail
	for _, p := range partitions {
		place, ok := detail.Partitions[p]
		if !ok {
			return nil, fmt.Errorf("no partition %d for that of %s; add it with: kdedup setup -c FILE", p, r.input)
		}
		start, _ := starts.Lookup(r.topic, p)
		end, _ := ends.Lookup(r.topic, p)
		if err := cmp.Or(place.Err, start.Err, end.Err); err != nil {
			return nil, fmt.Errorf("partition %d: %w", p, err)
		}
		t := &tail{partition: p, leader: place.Leader, start: start.Offset, window: firstWindow}
		if t.back(end.Offset) {
			open = append(open, t)
		}
	}
	return open, nil
}

// back moves the window to the one that ends at until; false means that nothing is left to read.
func (t *tail) back(until int64) bool {
	if until <= t.start {
		return false
	}
	t.until = until
	t.low = max(t.start, until-t.window)
	t.from = t.low
	t.window *= growWindow
	return true
}

// step fetches once from every leader and returns the tails that need another one.
func (r *fenceReader) step(ctx context.Context, open []*tail) ([]*tail, error) {
	byLeader := make(map[int32][]*tail)
	for _, t := range open {
		byLeader[t.leader] = append(byLeader[t.leader], t)
	}
	var left []*tail
	for leader, tails := range byLeader {
		response, err := r.fetch(ctx, leader, tails)
		if err != nil {
			return nil, err
		}
		for _, t := range tails {
			more, err := r.take(t, response[t.partition])
			if err != nil {
				return nil, fmt.Errorf("partition %d: %w", t.partition, err)
			}
			if more {
				left = append(left, t)
			}
		}
	}
	return left, ctx.Err()
}

func (r *fenceReader) fetch(ctx context.Context, leader int32, tails []*tail) (map[int32]*kmsg.FetchResponseTopicPartition, error) {
	req := kmsg.NewPtrFetchRequest()
	req.MaxWaitMillis, req.MinBytes, req.MaxBytes = fenceMaxWait, 1, 32<<20
	req.IsolationLevel = 1 // read_committed
	topic := kmsg.NewFetchRequestTopic()
	topic.Topic, topic.TopicID = r.topic, r.id
	for _, t := range tails {
		p := kmsg.NewFetchRequestTopicPartition()
		p.Partition, p.FetchOffset, p.PartitionMaxBytes = t.partition, t.from, fenceBytes
		topic.Partitions = append(topic.Partitions, p)
	}
	req.Topics = append(req.Topics, topic)
	answer, err := r.client.Broker(int(leader)).RetriableRequest(ctx, req)
	if err != nil {
		return nil, err
	}
	response := answer.(*kmsg.FetchResponse)
	if err := kerr.ErrorForCode(response.ErrorCode); err != nil {
		return nil, err
	}
	byPartition := make(map[int32]*kmsg.FetchResponseTopicPartition)
	for i := range response.Topics {
		for j := range response.Topics[i].Partitions {
			p := &response.Topics[i].Partitions[j]
			byPartition[p.Partition] = p
		}
	}
	return byPartition, nil
}

// take reads one partition's answer and reports whether the tail must be fetched again: for the
// rest of the window, or for an earlier window when this one held no committed fence.
func (r *fenceReader) take(t *tail, p *kmsg.FetchResponseTopicPartition) (more bool, err error) {
	if p == nil || len(p.RecordBatches) == 0 && p.ErrorCode == 0 {
		return true, nil // a transaction is open, or the answer was full before it came to this partition
	}
	fetched, next := kgo.ProcessFetchPartition(kgo.ProcessFetchPartitionOpts{
		Offset: t.from, IsolationLevel: kgo.ReadCommitted(), Topic: r.topic, Partition: t.partition,
	}, p, kgo.DefaultDecompressor(), nil)
	if fetched.Err != nil {
		return false, fetched.Err
	}
	for _, record := range fetched.Records {
		if string(record.Key) != r.input || record.Value == nil {
			continue
		}
		fence, err := parseFence(record)
		if err != nil {
			return false, err
		}
		// Without transactions, a member that lost the partition may have written after its next owner.
		r.found[t.partition] = r.found[t.partition].Merge(fence)
	}
	t.from = max(t.from, next)
	if t.from < t.until {
		return true, nil
	}
	if _, ok := r.found[t.partition]; ok {
		return false, nil
	}
	return t.back(t.low), nil
}
