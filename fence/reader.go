package fence

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

// reader finds the last committed fence of some partitions. A partition's end is not where its
// last fence is: behind it stand transaction markers, and fences of aborted transactions. So it
// reads a short window before the end, and longer ones only where that held no committed fence.
// Each step is one fetch per broker, whatever the number of partitions.
//
// The end is the high watermark, not the last stable offset. Where a transaction is open, the
// reader waits for it: its offsets may be committed while its marker is still missing here, and
// offsets that an operator sets back meanwhile would lie above the fence that can be seen.
type reader struct {
	client   *kgo.Client
	inputs   *kgo.Client // of the cluster that has the input; nil: client is
	topic    string
	input    string
	patience time.Duration // with transactions that do not end
	id       kadm.TopicID
	from     kadm.TopicID // of the input as it is now; zero if unknown
	found    map[int32]Fence
	starts   map[int32]Fence
	skips    map[int32]Skip
	lacking  map[int32]bool
}

// tail is the part of one fence partition that is still to be read.
type tail struct {
	partition   int32
	leader      int32
	start       int64 // of the log
	from, until int64 // the window; from moves on with every fetch
	low         int64 // where the window began
	window      int64
	skip        int64 // offset of the last skip that was found, or -1
}

const (
	firstWindow  = 8 // records and markers: usually one fence and its marker are enough
	growWindow   = 16
	fenceMaxWait = 500 // milliseconds that a broker waits where a transaction is open
	fenceBytes   = 256 << 10
)

// Patience is enough for the transaction of a dead member: its coordinator ends it after its
// timeout of 15 s, and looks every ten seconds.
const Patience = time.Minute

// AsCommitted has a reader wait for no transaction, and take the last fences that are committed
// now. That is for the checks of a start, which need to know what kind of fences there are, before
// any lane is there that ends what hangs.
const AsCommitted time.Duration = 0

// ErrHanging says that a transaction on the fence topic outlasted the patience of the reader.
var ErrHanging = errors.New("a transaction on it does not end; look for it with " +
	"kafka-transactions.sh find-hanging, and abort it")

// Found is what a reader knows about some partitions.
type Found struct {
	Fences map[int32]Fence // of the partitions that have one
	// Starts are where partitions began, as far as the reader came: it ends at a fence.
	Starts map[int32]Fence
	Skips  map[int32]Skip // the last ones, of records that are not done
	// Lacking are those for which the topic has no partition: the input was widened.
	Lacking map[int32]bool
	// ID of the input topic as it is now; zero if the broker does not tell it
	Input [16]byte
}

// Read returns the last committed fences of the partitions of an input. An open transaction is
// waited for with patience; ErrHanging says that it did not end.
func Read(
	ctx context.Context, client *kgo.Client, topic, input string, partitions []int32,
	patience time.Duration,
) (Found, error) {
	return ReadApart(ctx, client, client, topic, input, partitions, patience)
}

// ReadApart is Read where the input is on another cluster than the fences, which inputs is a client
// of.
func ReadApart(
	ctx context.Context, client, inputs *kgo.Client, topic, input string, partitions []int32,
	patience time.Duration,
) (Found, error) {
	r := &reader{client: client, inputs: inputs, topic: topic, input: input, patience: patience}
	if err := r.read(ctx, partitions); err != nil {
		return Found{}, fmt.Errorf("read fences of %s: %w", topic, err)
	}
	return Found{Fences: r.found, Starts: r.starts, Skips: r.skips, Lacking: r.lacking,
		Input: r.from}, nil
}

func (r *reader) read(ctx context.Context, partitions []int32) error {
	if r.patience != AsCommitted {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, r.patience, ErrHanging)
		defer cancel()
	}
	r.found, r.skips = make(map[int32]Fence, len(partitions)), make(map[int32]Skip)
	r.starts, r.lacking = make(map[int32]Fence), make(map[int32]bool)
	open, err := r.tails(ctx, partitions)
	for err == nil && len(open) > 0 {
		var left []*tail
		if left, err = r.step(ctx, open); err != nil && context.Cause(ctx) == ErrHanging {
			return fmt.Errorf("partition %d: %w", open[0].partition, ErrHanging)
		}
		open = left
	}
	return err
}

// tails looks up where each partition's log stands.
func (r *reader) tails(ctx context.Context, partitions []int32) ([]*tail, error) {
	admin := kadm.NewClient(r.client)
	apart := r.inputs != nil && r.inputs != r.client
	topics := []string{r.topic, r.input}
	if apart {
		topics = topics[:1] // the user may have no right on that name here
	}
	meta, err := admin.Metadata(ctx, topics...)
	if err != nil {
		return nil, err
	}
	detail, from := meta.Topics[r.topic], meta.Topics[r.input].ID
	if detail.Err != nil {
		return nil, fmt.Errorf("%w; create it with: kdedup setup -c FILE", detail.Err)
	}
	if apart {
		there, err := kadm.NewClient(r.inputs).Metadata(ctx, r.input)
		if err != nil {
			return nil, fmt.Errorf("ask for the ID of %s: %w", r.input, err)
		}
		from = there.Topics[r.input].ID
	}
	r.id, r.from = detail.ID, from
	starts, err := admin.ListStartOffsets(ctx, r.topic)
	if err != nil {
		return nil, err
	}
	list := admin.ListEndOffsets
	if r.patience == AsCommitted {
		list = admin.ListCommittedOffsets
	}
	ends, err := list(ctx, r.topic)
	if err != nil {
		return nil, err
	}
	var open []*tail
	for _, p := range partitions {
		place, ok := detail.Partitions[p]
		if !ok {
			r.lacking[p] = true
			continue
		}
		start, _ := starts.Lookup(r.topic, p)
		end, _ := ends.Lookup(r.topic, p)
		if err := cmp.Or(place.Err, start.Err, end.Err); err != nil {
			return nil, fmt.Errorf("partition %d: %w", p, err)
		}
		t := &tail{partition: p, leader: place.Leader, start: start.Offset, window: firstWindow,
			skip: -1}
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
func (r *reader) step(ctx context.Context, open []*tail) ([]*tail, error) {
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
		// if nothing came of any partition, no other one had used the room of the answer
		full := false
		for _, p := range response {
			full = full || len(p.RecordBatches) > 0
		}
		for _, t := range tails {
			more, err := r.take(t, response[t.partition], full)
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

func (r *reader) fetch(
	ctx context.Context, leader int32, tails []*tail,
) (map[int32]*kmsg.FetchResponseTopicPartition, error) {
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
func (r *reader) take(
	t *tail, p *kmsg.FetchResponseTopicPartition, full bool,
) (more bool, err error) {
	if p == nil {
		return true, nil
	}
	if len(p.RecordBatches) == 0 && p.ErrorCode == 0 {
		if full || p.LastStableOffset < t.until {
			// the answer was full before it came to this partition, or a transaction is open
			return true, nil
		}
		return r.through(t), nil // compaction has removed all up to the end of the log
	}
	fetched, next := kgo.ProcessFetchPartition(kgo.ProcessFetchPartitionOpts{
		Offset: t.from, IsolationLevel: kgo.ReadCommitted(), Topic: r.topic, Partition: t.partition,
	}, p, kgo.DefaultDecompressor(), nil)
	if fetched.Err != nil {
		return false, fetched.Err
	}
	for _, record := range fetched.Records {
		if err := r.note(t, record); err != nil {
			return false, err
		}
	}
	t.from = max(t.from, next)
	if t.from < t.until {
		return true, nil
	}
	return r.through(t), nil
}

// note takes a fence or a skip. Windows come from the end of the log to its start, and the records
// of each in order.
func (r *reader) note(t *tail, record *kgo.Record) error {
	switch {
	case record.Value == nil:
	case string(record.Key) == r.input:
		fence, err := Parse(record)
		if err != nil {
			return err
		}
		// Without transactions, a member that lost the partition may have written after its next
		// owner.
		r.found[t.partition] = r.found[t.partition].Merge(fence)
	case string(record.Key) == startKey(r.input):
		start, err := Parse(record)
		if err != nil {
			return err
		}
		r.noteStart(t.partition, start)
	case string(record.Key) == skipKey(r.input) && record.Offset > t.skip:
		skip, err := parseSkip(record)
		if err != nil {
			return err
		}
		r.skips[t.partition], t.skip = skip, record.Offset
	}
	return nil
}

// through is called at the end of a window, and reports whether there is an earlier one to read.
func (r *reader) through(t *tail) (more bool) {
	f, found := r.found[t.partition]
	if skip := r.skips[t.partition]; found && skip.Offset < f.Next() &&
		skip.LeaderEpoch <= f.LeaderEpoch {
		delete(r.skips, t.partition)
	}
	return !found && t.back(t.low)
}
