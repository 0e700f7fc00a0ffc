package migration

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/kdedup/kdedup/connect"
	"github.com/kdedup/kdedup/fence"
	"github.com/kdedup/kdedup/internal/brokers"
)

// sight is what shows that somebody has worked on the inputs: fences and offsets of the groups, by
// their places.
type sight map[string]string

// look reads them.
func (s *side) look(ctx context.Context, entries []connect.Entry) (sight, error) {
	seen := make(sight)
	for _, e := range entries {
		group, client := connect.GroupAt(s.clusters, e.Topic)
		found, err := group.Fences(ctx, client)
		if err != nil {
			return nil, err
		}
		for p, f := range found.Fences {
			if f.Next() > 0 {
				seen[fmt.Sprintf("the fence of %s[%d] in %s", e.Input, p, e.FenceTopic)] = text(f)
			}
		}
		offsets, err := brokers.Offsets(ctx, kadm.NewClient(client), e.ConsumerGroup,
			group.Grouped())
		if err != nil {
			return nil, err
		}
		for p, o := range offsets {
			seen[fmt.Sprintf("the offset of %s[%d] in consumer group %s", e.Input, p,
				e.ConsumerGroup)] = fmt.Sprint(o.At)
		}
	}
	return seen, nil
}

func text(f fence.Fence) string {
	return fmt.Sprintf("%d, epoch %d, claims up to %s, store %s, group %s, topic %x", f.Next(),
		f.LeaderEpoch, f.Claimed().UTC(), f.Store, f.Group, f.TopicID)
}

// change is the first difference to an earlier sight; empty: there is none.
func (s sight) change(before sight) string {
	all := maps.Clone(s)
	maps.Copy(all, before)
	for _, what := range slices.Sorted(maps.Keys(all)) {
		if s[what] != before[what] {
			return fmt.Sprintf("%s was %q and is %q", what, before[what], s[what])
		}
	}
	return ""
}
