package command

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
)

// settled reports whether every process has its share of the partitions, and none is on its way.
func (v *liveView) settled(ctx context.Context, processes demoGroup) (bool, error) {
	group := v.topic.ConsumerGroup
	described, err := kadm.NewClient(v.client).DescribeGroups(ctx, group)
	if err != nil {
		return false, fmt.Errorf("describe the group %s: %w", group, err)
	}
	partitions, having := 0, make(map[string]bool)
	for _, m := range described[group].Members {
		assigned, ok := m.Assigned.AsConsumer()
		if !ok {
			return false, nil
		}
		for _, t := range assigned.Topics {
			partitions += len(t.Partitions)
		}
		for _, p := range processes {
			if len(assigned.Topics) > 0 && strings.HasPrefix(m.ClientID, group+"-"+p.name+"-") {
				having[p.name] = true
			}
		}
	}
	return described[group].State == "Stable" && partitions == demoPartitions &&
		len(having) == len(processes), nil
}

// awaitSettled returns when the processes have shared the partitions out, or ctx ends.
func (v *liveView) awaitSettled(ctx context.Context, processes demoGroup) error {
	look := time.NewTicker(100 * time.Millisecond)
	defer look.Stop()
	for {
		if settled, err := v.settled(ctx, processes); settled || err != nil {
			return err
		}
		if err := processes.check(); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-look.C:
		}
	}
}
