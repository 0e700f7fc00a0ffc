package client

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/consumer"
	"github.com/kdedup/kdedup/fence"
	"github.com/kdedup/kdedup/internal/brokers"
	"github.com/kdedup/kdedup/internal/pause"
)

// What a group left on the cluster of the input, before its delivery there became exactly_once: the
// fences that tell how far it came with at_least_once.

// addLeft puts what the group left on the cluster of the input where there is neither fence nor
// start on that of the output.
func (g Group) addLeft(
	ctx context.Context, client *kgo.Client, partitions []int32, found fence.Found,
	patience time.Duration,
) error {
	open := undecided(found, partitions)
	if g.Inputs == nil || len(open) == 0 {
		return nil
	}
	left, err := fence.Read(ctx, g.Inputs, g.FenceTopic, g.Input, open, patience)
	if errors.Is(err, kerr.UnknownTopicOrPartition) ||
		errors.Is(err, kerr.TopicAuthorizationFailed) {
		left, err = fence.Found{}, nil // it was never there
	}
	if err != nil {
		return fmt.Errorf("on the cluster of the input: %w", err)
	}
	if err := g.addOffsetsLeft(ctx, client, open, &left); err != nil {
		return err
	}
	if len(left.Fences)+len(left.Starts) == 0 {
		return nil
	}
	active, err := hasMembers(ctx, kadm.NewClient(g.Inputs), g.Name)
	if err != nil {
		return fmt.Errorf("look whether consumer group %s has ended on the cluster of the input: %w",
			g.Name, err)
	}
	if active {
		return fmt.Errorf("%w: %s has members on the cluster of the input, as with delivery "+
			"at_least_once; stop them all, then those with exactly_once go on at their fences",
			consumer.ErrRival, g.Name)
	}
	for p, f := range left.Fences {
		if f.Group == "" {
			f.Group = g.Name
		}
		found.Fences[p] = f
	}
	maps.Copy(found.Starts, left.Starts)
	return nil
}

// ErrFencesLost says that the fence topic on the cluster of the output is not the one that told how
// far the group has come.
var ErrFencesLost = errors.New("the fences are lost")

// addOffsetsLeft looks at the group's offsets on the cluster of the input. With at_least_once they
// tell where a partition goes on that has no fence. Hints tell that there were fences.
func (g Group) addOffsetsLeft(
	ctx context.Context, client *kgo.Client, open []int32, left *fence.Found,
) error {
	open = undecided(*left, open)
	offsets, here, err := g.offsetsLeft(ctx)
	if err != nil {
		return err
	}
	for _, p := range open {
		at := offsets[p]
		if at.At > 0 && here.vouches(at.Metadata) {
			if left.Starts == nil {
				left.Starts = make(map[int32]fence.Fence)
			}
			left.Starts[p] = fence.StartAt(here.topicID, at.At, at.LeaderEpoch, g.Name)
		}
	}
	lost, err := g.lost(ctx, client, undecided(*left, open))
	if err != nil || len(lost) == 0 {
		return err
	}
	places := make([]string, len(lost))
	for i, o := range lost {
		places[i] = fmt.Sprintf("%s[%d] up to %d", g.Input, o.Partition, o.At)
	}
	return fmt.Errorf("%w: topic %s on the cluster of kafka.output has neither fence nor offset of "+
		"what consumer group %s has handled: %s. It was deleted, or this is another cluster. Name "+
		"the cluster that was used before; if the topic is lost, go on there, which may forward "+
		"the last second of each partition again, with: kdedup setup -c FILE --adopt-offsets",
		ErrFencesLost, g.FenceTopic, g.Name, some(places))
}

// offsetsLeft are the group's offsets on the cluster of the input, and their place.
func (g Group) offsetsLeft(
	ctx context.Context,
) (offsets map[int32]kadm.Offset, here place, err error) {
	admin := kadm.NewClient(g.Inputs)
	fetched, err := brokers.Offsets(ctx, admin, g.Name, g.Input)
	if errors.Is(err, kerr.GroupAuthorizationFailed) {
		err = nil // there never were any
	}
	if err == nil {
		here, err = placeOf(ctx, admin, admin, g.Name, g.Input)
	}
	if err != nil {
		return nil, here, fmt.Errorf("on the cluster of the input: %w", err)
	}
	offsets = make(map[int32]kadm.Offset)
	for p, at := range fetched {
		if at.Err == nil {
			offsets[p] = at.Offset
		}
	}
	return offsets, here, nil
}

// lost are the hints, of partitions without a fence, that have no offset beside them on the cluster
// of the output: its fence topic is gone, for with it the brokers delete the offsets.
func (g Group) lost(
	ctx context.Context, client *kgo.Client, unfenced []int32,
) (list []kadm.Offset, err error) {
	if g.Inputs == nil {
		return nil, nil
	}
	hints, here, err := g.offsetsLeft(ctx)
	if err != nil {
		return nil, err
	}
	for _, p := range slices.Sorted(slices.Values(unfenced)) {
		if at, some := hints[p]; some && at.At > 0 && here.hinted(at.Metadata) {
			list = append(list, at)
		}
	}
	if len(list) == 0 {
		return nil, nil
	}
	now, err := brokers.Offsets(ctx, kadm.NewClient(client), g.Name, g.Grouped())
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(list, func(o kadm.Offset) bool {
		at, some := now[o.Partition]
		return some && at.Err == nil && at.At >= 0
	}), nil
}

// adoptLost has the group go on at the hints of what is lost: all below them was handled, with
// claims of before now. Without fences that say so, copies would stand for what was forwarded.
func (g Group) adoptLost(
	ctx context.Context, client *kgo.Client, dryRun bool, say func(string),
) error {
	if g.Inputs == nil {
		return nil
	}
	details, err := kadm.NewClient(g.Inputs).ListTopics(ctx, g.Input)
	if err != nil {
		return fmt.Errorf("list partitions of %s: %w", g.Input, err)
	}
	partitions := details[g.Input].Partitions.Numbers()
	found, err := fence.ReadApart(ctx, client, g.Inputs, g.FenceTopic, g.Input, partitions,
		fence.Patience)
	if err != nil {
		return err
	}
	lost, err := g.lost(ctx, client, undecided(found, partitions))
	if err != nil || len(lost) == 0 {
		return err
	}
	if err := g.adopt(ctx, client, lost, dryRun, say); err != nil || dryRun {
		return err
	}
	now := time.Now()
	var records []*kgo.Record
	for _, o := range lost {
		f := fence.Fence{}.Advance(fence.Span{TopicID: found.Input, Next: o.At,
			LeaderEpoch: o.LeaderEpoch, Claimed: now, Group: g.Name, Now: now})
		records = append(records, fence.Record(g.FenceTopic, g.Input, o.Partition, f))
	}
	if err := client.ProduceSync(ctx, records...).FirstErr(); err != nil {
		return fmt.Errorf("write to %s: %w", g.FenceTopic, err)
	}
	return nil
}

// hinted reports whether a text stands beside a hint of this group and input.
func (p place) hinted(text string) bool {
	rest, is := strings.CutPrefix(text, hintPrefix)
	anywhere := p
	anywhere.cluster = "" // it names that of the output
	return is && anywhere.vouches(markPrefix+rest)
}

// CheckLeft refuses a group on the cluster of the input, which client is of, that is not what an
// earlier at_least_once has left there, or the hints of exactly_once.
func (g Group) CheckLeft(ctx context.Context, client *kgo.Client) error {
	return pause.Repeat(ctx, retryStart, kerr.IsRetriable, func() error {
		active, err := hasMembers(ctx, kadm.NewClient(client), g.Name)
		if err != nil {
			return fmt.Errorf("describe consumer group %s on the cluster of the input: %w", g.Name,
				err)
		}
		if active {
			return fmt.Errorf("%w: %s has members on the cluster of the input; with exactly_once "+
				"and kafka.output the group is on the cluster of the output. If they are kdedup's, "+
				"of delivery at_least_once, stop them all first; if not, give this entry a "+
				"consumer_group of its own", consumer.ErrRival, g.Name)
		}
		return g.checkStrangersLeft(ctx, client)
	})
}

// checkStrangersLeft refuses offsets of others, which hints would overwrite.
func (g Group) checkStrangersLeft(ctx context.Context, client *kgo.Client) error {
	g.Inputs = client
	offsets, here, err := g.offsetsLeft(ctx)
	if err != nil {
		return err
	}
	var strange []string
	for _, p := range slices.Sorted(maps.Keys(offsets)) {
		text := offsets[p].Metadata
		if offsets[p].At > 0 && !here.vouches(text) && !here.hinted(text) && text != earlierMark {
			strange = append(strange, fmt.Sprintf("%s[%d] at %d", g.Input, p, offsets[p].At))
		}
	}
	if len(strange) == 0 {
		return nil
	}
	return fmt.Errorf("%w: consumer group %s has offsets on the cluster of the input that kdedup "+
		"did not commit there: %s. kdedup tells its progress there, and would overwrite them: give "+
		"this entry a consumer_group of its own, or delete the offsets", consumer.ErrStrangeOffsets,
		g.Name, some(strange))
}

// CheckNotAhead refuses at_least_once where exactly_once has handled more, on the cluster of the
// output: its fences are there, and what they tell of would be forwarded again.
func (g Group) CheckNotAhead(ctx context.Context, inputs, outputs *kgo.Client) error {
	details, err := kadm.NewClient(inputs).ListTopics(ctx, g.Input)
	if err != nil {
		return fmt.Errorf("list partitions of %s: %w", g.Input, err)
	}
	there, err := fence.ReadApart(ctx, outputs, inputs, g.FenceTopic, g.Input,
		details[g.Input].Partitions.Numbers(), fence.AsCommitted)
	if errors.Is(err, kerr.UnknownTopicOrPartition) ||
		errors.Is(err, kerr.TopicAuthorizationFailed) {
		return nil // exactly_once was never at work
	}
	if err != nil {
		return fmt.Errorf("on the cluster of kafka.output: %w", err)
	}
	here, err := g.Fences(ctx, inputs)
	if err != nil {
		return err
	}
	for _, p := range slices.Sorted(maps.Keys(there.Fences)) {
		f := there.Fences[p]
		if f.Foreign(here.Input) || f.Next() <= here.Fences[p].Next() {
			continue
		}
		return fmt.Errorf("%w: with exactly_once, consumer group %s has handled %s[%d] up to %d, "+
			"as topic %s on the cluster of kafka.output tells, and at_least_once only up to %d: "+
			"what lies between would be forwarded again. Set delivery: exactly_once; to begin "+
			"apart from what was, give this entry a consumer_group and a scope of its own",
			ErrAhead, g.Name, g.Input, p, f.Next(), g.FenceTopic, here.Fences[p].Next())
	}
	return nil
}

// ErrAhead says that the group has gone on with another delivery.
var ErrAhead = errors.New("this delivery is behind the other one")
