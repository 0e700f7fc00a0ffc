package client

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"sync"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/consumer"
	"github.com/kdedup/kdedup/internal/crashpoint"
)

// A transaction on the cluster of the output cannot have offsets of a group on that of the input,
// and no coordinator there keeps a stopped member from committing here. So the group of a
// transactional session is where its transactions are. It is a group of consumers of the fence
// topic, which has a partition for each of the input: whoever has the one handles the other. Its
// offsets are places of the input, beside partitions of the fence topic.

// atOutput turns the options of a transactional session that forwards to another cluster into those
// of a group on that cluster.
func (o Options) atOutput() Options {
	o.reading, o.readingAsks = o.Connection, o.Asks
	o.Connection, o.Asks, o.Forwarding = o.Forwarding, o.OutputAsks, nil
	return o
}

// grouped is the topic whose partitions the group shares out, and beside which its offsets stand.
func (o *Options) grouped() string {
	if o.reading != nil {
		return o.FenceTopic
	}
	return o.Input
}

// apart reads partitions of the input for a group that is on another cluster. It is told of them
// by the events of the group, which it passes on.
type apart struct {
	events  consumer.Events
	input   string
	grouped string
	client  *kgo.Client // in no group
	logs    *kadm.Client
	hints   *hints

	groupedID [16]byte // of the topic; zero where the brokers tell none
	width     Width
	log       *slog.Logger
	wide      int // partitions of the topic, as the watch of the lag knows them

	mu        sync.Mutex
	owned     map[int32]bool
	committed consumer.Offsets // of the owned, as they were when they were assigned

	watching context.Context // ends when the session is closed
	end      context.CancelFunc
	failed   context.Context // ends when the group gives up, with its error
	fail     context.CancelCauseFunc
	done     sync.WaitGroup
}

// newClientApart makes the client of a session whose group is not where the input is.
func newClientApart(
	ctx context.Context, opts Options, events consumer.Events, more []kgo.Opt,
) (*Client, error) {
	unpacker, err := newUnpacker(opts.UnpackedBytes)
	if err != nil {
		return nil, err
	}
	a, here, err := newApart(ctx, &opts, events, unpacker)
	if err != nil {
		return nil, err
	}
	group, unassigned, err := newProducer(append(append(opts.kafka(a), more...),
		kgo.AdjustFetchOffsetsFn(a.begin))...)
	if err != nil {
		a.hints.stop()
		a.close()
		return nil, err
	}
	a.watch(group)
	return &Client{opts: opts, kafka: group, output: group, input: a.client,
		admin: kadm.NewClient(cmp.Or(opts.Asks, group)), logs: a.logs, apart: a,
		unpacker: unpacker, here: here, unassigned: unassigned}, nil
}

func newApart(
	ctx context.Context, opts *Options, events consumer.Events, unpacker *unpacker,
) (*apart, place, error) {
	client, err := kgo.NewClient(append(append(opts.reading(), opts.fetching()...),
		kgo.WithDecompressor(unpacker))...)
	if err != nil {
		return nil, place{}, fmt.Errorf("the client that reads %s: %w", opts.Input, err)
	}
	a := &apart{events: events, input: opts.Input, grouped: opts.grouped(), client: client,
		logs: kadm.NewClient(cmp.Or(opts.readingAsks, client)), width: opts.Width,
		log:   opts.Logger,
		owned: make(map[int32]bool), committed: make(consumer.Offsets)}
	here, err := a.locate(ctx, opts)
	if err != nil {
		client.Close()
		return nil, place{}, err
	}
	a.hints = newHints(a.logs, opts, here.hint())
	a.watching, a.end = context.WithCancel(context.Background())
	a.failed, a.fail = context.WithCancelCause(context.Background())
	return a, here, nil
}

// locate asks where the group is. A client would wait for a fence topic that is missing.
func (a *apart) locate(ctx context.Context, opts *Options) (place, error) {
	asks, end, err := asking(opts.Asks, opts.Connection)
	if err != nil {
		return place{}, err
	}
	defer end()
	group := kadm.NewClient(asks)
	meta, err := group.Metadata(ctx, a.grouped)
	if err == nil {
		err = meta.Topics[a.grouped].Err
	}
	if err != nil {
		return place{}, fmt.Errorf("topic %s on the cluster of the output: %w", a.grouped, err)
	}
	a.groupedID, a.wide = meta.Topics[a.grouped].ID, len(meta.Topics[a.grouped].Partitions)
	return placeOf(ctx, group, a.logs, opts.ConsumerGroup, opts.Input)
}

// Assigned implements consumer.Events.
func (a *apart) Assigned(partitions []int32) {
	a.mu.Lock()
	for _, p := range partitions {
		a.owned[p] = true
	}
	a.mu.Unlock()
	a.events.Assigned(partitions)
}

// Revoked implements consumer.Events.
func (a *apart) Revoked(partitions []int32) {
	a.hints.commit(hintTimeout) // their next owner may not come to it
	a.drop(partitions)
	a.events.Revoked(partitions)
}

// Lost implements consumer.Events.
func (a *apart) Lost(partitions []int32) {
	a.drop(partitions)
	a.events.Lost(partitions)
}

// Blocked implements consumer.Events.
func (a *apart) Blocked() { a.events.Blocked() }

func (a *apart) drop(partitions []int32) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, p := range partitions {
		delete(a.owned, p)
		delete(a.committed, p)
	}
	a.hints.forget(partitions)
	a.client.RemoveConsumePartitions(map[string][]int32{a.input: partitions})
}

// begin is called with the group's offsets of partitions that were assigned, stable ones: it reads
// the input from there. The group's client has nothing to read.
func (a *apart) begin(
	_ context.Context, offsets map[string]map[int32]kgo.Offset,
) (map[string]map[int32]kgo.Offset, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	from := make(map[int32]kgo.Offset)
	for p, at := range offsets[a.grouped] {
		if !a.owned[p] {
			continue
		}
		from[p] = at
		if place := at.EpochOffset(); place.Offset >= 0 {
			a.committed[p] = place
			if place.Offset > 0 {
				a.hints.note(p, place)
			}
		}
	}
	if len(from) > 0 {
		crashpoint.At("partitions-begun")
	}
	a.client.AddConsumePartitions(map[string]map[int32]kgo.Offset{a.input: from})
	return nil, nil
}

// offsets are those that the group had when the partitions were assigned.
func (a *apart) offsets() consumer.Offsets {
	a.mu.Lock()
	defer a.mu.Unlock()
	return maps.Clone(a.committed)
}

// hint tells the cluster of the input what was committed on that of the output. A transaction may
// end when its partitions were taken away: what it says of them is sent once, now.
func (a *apart) hint(offsets consumer.Offsets) {
	parting := make(consumer.Offsets)
	a.mu.Lock()
	for p, at := range offsets {
		switch {
		case at.Offset <= 0:
		case a.owned[p]:
			a.hints.note(p, at)
		default:
			parting[p] = at
		}
	}
	a.mu.Unlock()
	a.hints.send(parting, hintTimeout)
}

// widen is told how many partitions the input has. The group shares out those of the fence topic,
// so what the input has got more waits until that is as wide.
func (a *apart) widen(ctx context.Context, partitions int) {
	if partitions <= a.wide || a.width.Widen == nil {
		return
	}
	if err := a.width.Widen(ctx); err != nil {
		a.log.Warn("nobody reads the new partitions of the input before the fence topic has as "+
			"many: kdedup setup -c FILE adds them", "topic", a.grouped, "error", err)
		return
	}
	a.wide = partitions
}

// watch hears what the client of the group cannot mend. It fetches nothing, so nothing else comes.
func (a *apart) watch(group *kgo.Client) {
	a.done.Go(func() {
		for a.watching.Err() == nil {
			fetches := group.PollFetches(a.watching)
			if a.watching.Err() != nil || fetches.IsClientClosed() {
				return
			}
			if err := fetches.Err(); err != nil {
				a.fail(fmt.Errorf("the group, on the cluster of the output: %w", err))
				return
			}
		}
	})
}

// poll ends early, with the error, when the group has given up.
func (a *apart) poll(ctx context.Context, n int) kgo.Fetches {
	polling, end := context.WithCancel(ctx)
	defer end()
	defer context.AfterFunc(a.failed, end)()
	fetches := a.client.PollRecords(polling, n)
	if err := context.Cause(a.failed); err != nil && ctx.Err() == nil {
		return append(fetches, kgo.NewErrFetch(err)...)
	}
	return fetches
}

// close comes when the group is left.
func (a *apart) close() {
	a.end()
	a.done.Wait()
	a.fail(nil)
	a.client.Close()
}
