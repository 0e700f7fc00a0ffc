package torture

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/kdedup/kdedup/internal/pause"
)

// ends are how far the partitions of a topic reach. What a transaction leaves behind counts.
func ends(ctx context.Context, admin *kadm.Client, topic string) (map[int32]int64, error) {
	listed, err := admin.ListEndOffsets(ctx, topic)
	if err = errors.Join(err, listed.Error()); err != nil {
		return nil, fmt.Errorf("offsets of %s: %w", topic, err)
	}
	sizes := make(map[int32]int64)
	listed.Each(func(o kadm.ListedOffset) { sizes[o.Partition] = o.Offset })
	return sizes, nil
}

// waitForQuiet returns when the clean topic has not grown for the time of the patience. While a
// consumer group still has something to read on the input, it waits longer: a group waits for a
// member that was killed, and again for one that was killed while it joined.
func (p Plan) waitForQuiet(ctx context.Context, at clusters) error {
	var last map[int32]int64
	for since := time.Now(); ; pause.For(ctx, time.Second) {
		sizes, err := ends(ctx, at.clean, p.Clean)
		if err != nil {
			return err
		}
		if !maps.Equal(sizes, last) {
			last, since = sizes, time.Now()
			continue
		}
		still := time.Since(since)
		if still < p.Patience {
			continue
		}
		group, lag, err := p.lag(ctx, at.input)
		if err != nil || lag == 0 {
			return err
		}
		if still > p.Patience+longestJoin {
			p.Step("group %s has not read %d records, and %s has not grown for %v: it is read as it is",
				group, lag, p.Clean, still.Round(time.Second))
			return nil
		}
	}
}

// longestJoin is some session timeouts of Kafka's default, one after the other.
const longestJoin = 4 * time.Minute

// lag is how many records of the input a consumer group has not read that commits offsets there, or
// has members that want to. A command that has no group has no lag.
func (p Plan) lag(ctx context.Context, admin *kadm.Client) (group string, lag int64, err error) {
	ends, err := admin.ListEndOffsets(ctx, p.Input)
	if err = errors.Join(err, ends.Error()); err != nil {
		return "", 0, fmt.Errorf("offsets of %s: %w", p.Input, err)
	}
	groups, err := admin.ListGroups(ctx)
	if err != nil {
		return "", 0, fmt.Errorf("consumer groups of %s: %w", p.Input, err)
	}
	described, err := admin.DescribeGroups(ctx, groups.Groups()...)
	if err != nil {
		return "", 0, fmt.Errorf("consumer groups of %s: %w", p.Input, err)
	}
	for _, offsets := range admin.FetchManyOffsets(ctx, groups.Groups()...) {
		if offsets.Err != nil || len(offsets.Fetched[p.Input]) == 0 &&
			!reads(described[offsets.Group], p.Input) {
			continue
		}
		behind := int64(0)
		ends.Each(func(end kadm.ListedOffset) {
			committed, _ := offsets.Fetched.Lookup(p.Input, end.Partition)
			behind += end.Offset - max(committed.At, 0)
		})
		if behind > lag {
			group, lag = offsets.Group, behind
		}
	}
	return group, lag, nil
}

// reads tells whether a member of the group has subscribed to the topic. While members join, the
// coordinator does not say to what: then they may have.
func reads(group kadm.DescribedGroup, topic string) bool {
	if len(group.Members) > 0 && group.State != "Stable" {
		return true
	}
	return slices.ContainsFunc(group.Members, func(m kadm.DescribedGroupMember) bool {
		joined, is := m.Join.AsConsumer()
		return is && slices.Contains(joined.Topics, topic)
	})
}
