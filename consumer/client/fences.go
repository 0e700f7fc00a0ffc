package client

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/fence"
)

// shortPatience is how long the reader of the fences waits for open transactions before it asks
// whether they can end at all.
const shortPatience = 5 * time.Second

// Fences implements consumer.Client. It ends the transactions of other lanes whose markers are
// lost, instead of waiting for them until those lanes join again.
func (c *Client) Fences(ctx context.Context, partitions []int32) (fence.Found, error) {
	found, err := fence.ReadApart(ctx, c.kafka, c.input, c.opts.FenceTopic, c.opts.Input,
		partitions, shortPatience)
	if errors.Is(err, fence.ErrHanging) {
		if err := endHanging(ctx, c.admin, &c.opts, partitions); err != nil {
			c.opts.Logger.Warn("cannot look for transactions whose markers are missing",
				"error", err)
		}
		found, err = fence.ReadApart(ctx, c.kafka, c.input, c.opts.FenceTopic, c.opts.Input,
			partitions, fence.Patience)
	}
	if err != nil {
		return found, err
	}
	err = c.opts.Earlier.add(ctx, c.kafka, c.input, c.opts.Input, partitions, found,
		fence.Patience)
	if err != nil {
		return found, err
	}
	return found, c.group().addLeft(ctx, c.kafka, partitions, found, fence.Patience)
}

// Earlier is the consumer group whose claims a group goes on with. It is zero for a group that has
// its own.
type Earlier struct {
	Group      string
	FenceTopic string
}

// add puts the fences of the earlier group where there are none yet.
func (e Earlier) add(
	ctx context.Context, client, inputs *kgo.Client, input string, partitions []int32,
	found fence.Found, patience time.Duration,
) error {
	open := undecided(found, partitions)
	if e.Group == "" || len(open) == 0 {
		return nil
	}
	earlier, err := fence.ReadApart(ctx, client, inputs, e.FenceTopic, input, open, patience)
	if errors.Is(err, kerr.UnknownTopicOrPartition) {
		return nil // the scope is shared by inputs, and its name is nobody's group
	}
	if err != nil {
		return err
	}
	for p, f := range earlier.Fences {
		if f.Group == "" {
			f.Group = e.Group
		}
		found.Fences[p] = f
	}
	maps.Copy(found.Starts, earlier.Starts)
	return nil
}

func undecided(found fence.Found, partitions []int32) []int32 {
	return slices.DeleteFunc(slices.Clone(partitions), func(p int32) bool {
		_, decided := found.Begin(p)
		return decided
	})
}
