package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
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

// Group is a consumer group and what tells whose its offsets are.
type Group struct {
	Name       string
	Input      string
	FenceTopic string
	FromEnd    bool // a group without offsets begins at the end of the input
	Earlier    Earlier
	// Inputs is a client of the cluster that has the input, if that is not the one that has the
	// group and the fence topic. The methods take one of the latter.
	Inputs *kgo.Client
}

// Grouped is the topic beside which the group's offsets stand: see atOutput.
func (g Group) Grouped() string {
	if g.Inputs != nil {
		return g.FenceTopic
	}
	return g.Input
}

// logs asks about the input.
func (g Group) logs(admin *kadm.Client) *kadm.Client {
	if g.Inputs != nil {
		return kadm.NewClient(g.Inputs)
	}
	return admin
}

// Check refuses a group that somebody else uses: one with members that are not kdedup's, or with
// offsets that kdedup did not commit. Their records would be skipped.
func (g Group) Check(ctx context.Context, client *kgo.Client) error {
	// On a new cluster the topic of the groups' offsets is made by the first request for it.
	return pause.Repeat(ctx, retryStart, kerr.IsRetriable, func() error {
		if err := g.checkMembers(ctx, kadm.NewClient(client)); err != nil {
			return err
		}
		return g.checkOffsets(ctx, client, looks{patience: fence.AsCommitted, earlier: true})
	})
}

// CheckEarlier refuses offsets with marks of earlier versions, which may be copies, unless fences
// tell that the group was at work here. A start calls it if nothing else tells that.
func (g Group) CheckEarlier(ctx context.Context, client *kgo.Client) error {
	return pause.Repeat(ctx, retryStart, kerr.IsRetriable, func() error {
		return g.checkOffsets(ctx, client, looks{patience: fence.AsCommitted})
	})
}

// looks say how offsets are looked at.
type looks struct {
	only     []int32 // nil: at those of all partitions
	patience time.Duration
	earlier  bool // marks of earlier versions are believed
}

func (g Group) checkOffsets(ctx context.Context, client *kgo.Client, l looks) error {
	strange, err := g.strangeOffsets(ctx, client, l)
	if err != nil || len(strange) == 0 {
		return err
	}
	places := make([]string, len(strange))
	copied := ""
	for i, o := range strange {
		places[i] = fmt.Sprintf("%s[%d] at %d", g.Input, o.Partition, o.At)
		if marked(o.Metadata) || o.Metadata == earlierMark {
			copied = "; they bear marks of kdedup that were not made here: of another cluster, " +
				"topic or group, from which they were copied, as MirrorMaker does"
		}
	}
	return fmt.Errorf("%w: consumer group %s has offsets without a fence: %s; what is below them "+
		"would not be forwarded%s. "+
		"Give this entry a consumer_group of its own, or delete the offsets; if kdedup shall "+
		"begin there, run: kdedup setup -c FILE --adopt-offsets",
		consumer.ErrStrangeOffsets, g.Name, some(places), copied)
}

// some keeps a message short.
func some(all []string) string {
	const most = 6
	if more := len(all) - most; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(all[:most], ", "), more)
	}
	return strings.Join(all, ", ")
}

// strangeOffsets are those that kdedup did not commit here, and that would skip something. A
// partition with a fence is none of them: where it begins is decided by its fence.
func (g Group) strangeOffsets(
	ctx context.Context, client *kgo.Client, l looks,
) ([]kadm.Offset, error) {
	suspects, err := g.suspects(ctx, kadm.NewClient(client), l)
	if err != nil || len(suspects) == 0 {
		return nil, err
	}
	partitions := make([]int32, len(suspects))
	for i, o := range suspects {
		partitions[i] = o.Partition
	}
	found, err := g.fences(ctx, client, partitions, l.patience)
	if err != nil {
		return nil, err
	}
	suspects = slices.DeleteFunc(suspects, func(o kadm.Offset) bool {
		f, decided := found.Begin(o.Partition)
		return decided && !f.Foreign(found.Input)
	})
	// Versions before the mark pinned partitions at their ends without it, those after them with
	// one that names no place, and some have had no record since. If the group has written fences
	// for others, it is taken for such a group.
	pinned := func(o kadm.Offset) bool {
		return o.Metadata == earlierMark || g.FromEnd && !marked(o.Metadata)
	}
	if !slices.ContainsFunc(suspects, pinned) {
		return suspects, nil
	}
	own, err := g.hasFences(ctx, client, l.patience)
	if err == nil && own {
		suspects = slices.DeleteFunc(suspects, pinned)
	}
	return suspects, err
}

// suspects are offsets that no mark vouches for, and that leave out records.
func (g Group) suspects(
	ctx context.Context, admin *kadm.Client, l looks,
) (list []kadm.Offset, err error) {
	committed, err := brokers.Offsets(ctx, admin, g.Name, g.Grouped())
	if err != nil {
		return nil, err
	}
	here, err := g.place(ctx, admin)
	if err != nil {
		return nil, err
	}
	for _, o := range committed {
		believed := here.vouches(o.Metadata) || l.earlier && o.Metadata == earlierMark
		if o.Err == nil && o.At > 0 && !believed &&
			(l.only == nil || slices.Contains(l.only, o.Partition)) {
			list = append(list, o.Offset)
		}
	}
	if len(list) == 0 {
		return nil, nil
	}
	starts, err := g.logs(admin).ListStartOffsets(ctx, g.Input)
	if err != nil {
		return nil, fmt.Errorf("list the start of %s: %w", g.Input, err)
	}
	ends, err := g.logs(admin).ListCommittedOffsets(ctx, g.Input)
	if err != nil {
		return nil, fmt.Errorf("list the end of %s: %w", g.Input, err)
	}
	list = slices.DeleteFunc(list, func(o kadm.Offset) bool {
		start, known := starts.Lookup(g.Input, o.Partition)
		end, _ := ends.Lookup(g.Input, o.Partition)
		return known && start.Err == nil && o.At <= start.Offset || g.FromEnd && end.Err == nil &&
			o.At >= end.Offset
	})
	slices.SortFunc(list, func(a, b kadm.Offset) int { return int(a.Partition - b.Partition) })
	return list, nil
}

func (g Group) fences(
	ctx context.Context, client *kgo.Client, partitions []int32, patience time.Duration,
) (fence.Found, error) {
	found, err := fence.ReadApart(ctx, client, cmp.Or(g.Inputs, client), g.FenceTopic, g.Input,
		partitions, patience)
	if errors.Is(err, kerr.UnknownTopicOrPartition) { // setup has only said that it would make it
		found, err = fence.Found{Fences: make(map[int32]fence.Fence),
			Starts: make(map[int32]fence.Fence), Lacking: make(map[int32]bool)}, nil
	}
	if err == nil {
		err = g.Earlier.add(ctx, client, cmp.Or(g.Inputs, client), g.Input, partitions, found,
			patience)
	}
	if err == nil {
		err = g.addLeft(ctx, client, partitions, found, patience)
	}
	return found, err
}

// Fences reads those of all partitions of the input, as they are committed now.
func (g Group) Fences(ctx context.Context, client *kgo.Client) (fence.Found, error) {
	return g.allFences(ctx, client, fence.AsCommitted)
}

func (g Group) allFences(
	ctx context.Context, client *kgo.Client, patience time.Duration,
) (fence.Found, error) {
	details, err := g.logs(kadm.NewClient(client)).ListTopics(ctx, g.Input)
	if err != nil {
		return fence.Found{}, fmt.Errorf("list partitions of %s: %w", g.Input, err)
	}
	return g.fences(ctx, client, details[g.Input].Partitions.Numbers(), patience)
}

// hasFences reports whether the group has written fences of the input.
func (g Group) hasFences(
	ctx context.Context, client *kgo.Client, patience time.Duration,
) (bool, error) {
	found, err := g.allFences(ctx, client, patience)
	for _, f := range found.Fences {
		if (f.Group == "" || f.Group == g.Name) && !f.Foreign(found.Input) {
			return true, err
		}
	}
	return false, err
}

// Adopt marks the offsets that Check refuses, so that kdedup begins there, and tells each of them.
// The group must have no members.
func (g Group) Adopt(ctx context.Context, client *kgo.Client, dryRun bool, say func(string)) error {
	if err := g.adoptLost(ctx, client, dryRun, say); err != nil {
		return err
	}
	strange, err := g.strangeOffsets(ctx, client, looks{patience: fence.Patience})
	if err != nil || len(strange) == 0 {
		return err
	}
	return g.adopt(ctx, client, strange, dryRun, say)
}

func (g Group) adopt(
	ctx context.Context, client *kgo.Client, places []kadm.Offset, dryRun bool, say func(string),
) error {
	here, err := g.place(ctx, kadm.NewClient(client))
	if err != nil {
		return err
	}
	offsets := make(kadm.Offsets)
	for _, o := range places {
		o.Topic, o.Metadata = g.Grouped(), here.mark()
		offsets.Add(o)
	}
	what := "adopted"
	if dryRun {
		what = "would adopt"
	} else if err := kadm.NewClient(client).CommitAllOffsets(ctx, g.Name, offsets); errors.Is(err,
		kerr.UnknownMemberID) {
		return fmt.Errorf("adopt the offsets of consumer group %s: it has members: stop them first",
			g.Name)
	} else if err != nil {
		return fmt.Errorf("adopt the offsets of consumer group %s: %w", g.Name, err)
	}
	for _, o := range places {
		say(fmt.Sprintf(
			"%s offset %d of %s[%d] in consumer group %s: nothing below it will be forwarded", what,
			o.At, g.Input, o.Partition, g.Name))
	}
	return nil
}

// CheckOffsets implements consumer.Client.
func (c *Client) CheckOffsets(ctx context.Context, partitions []int32) error {
	return c.group().checkOffsets(ctx, c.kafka, looks{partitions, fence.Patience, true})
}

func (c *Client) group() Group {
	g := Group{
		Name: c.opts.ConsumerGroup, Input: c.opts.Input, FenceTopic: c.opts.FenceTopic,
		FromEnd: c.opts.FromEnd, Earlier: c.opts.Earlier,
	}
	if c.apart != nil {
		g.Inputs = c.apart.client
	}
	return g
}
