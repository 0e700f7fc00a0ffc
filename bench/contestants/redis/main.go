// Command redis is a consumer as it is often written by hand: each record's ID is set in Redis with
// NX and EX, in pipelines; records whose key was set are produced, and the offsets are committed
// when that is acknowledged.
//
// It forwards at least once, except that a crash drops the records whose keys were set: a key does
// not say whose it is. What Redis has not written to its disk is forgotten when it fails, and then
// duplicates pass.
package main

import (
	"context"
	"flag"
	"fmt"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/twmb/franz-go/pkg/kgo"
	"golang.org/x/sync/errgroup"

	"github.com/kdedup/kdedup/bench/contestants/member"
)

func main() {
	o := member.Flags(10_000, 2)
	address := flag.String("redis", "127.0.0.1:6379", "server")
	prefix := flag.String("prefix", "", "of the keys")
	ttl := flag.Duration("ttl", 7*24*time.Hour, "how long a key holds")
	ordered := flag.Bool("ordered", false, "keep the order of each partition")
	pipeline := flag.Int("pipeline", 1000, "most commands in one pipeline")
	flag.Parse()

	client := redis.NewClient(&redis.Options{Addr: *address})
	defer client.Close()
	c := &consumer{Options: o, redis: client, prefix: *prefix, ttl: *ttl, pipeline: *pipeline}
	forward := c.unordered
	if *ordered {
		forward = c.inOrder
	}
	o.Main(func(ctx context.Context, _ int) error { return o.AtLeastOnce(ctx, forward) })
}

type consumer struct {
	*member.Options
	redis    *redis.Client
	prefix   string
	ttl      time.Duration
	pipeline int
}

// inOrder sends one pipeline after the other and produces in the order of the poll.
func (c *consumer) inOrder(ctx context.Context, client *kgo.Client, records []*kgo.Record) error {
	batch := c.NewBatch(client)
	for chunk := range slices.Chunk(records, c.pipeline) {
		if err := c.forward(ctx, batch, chunk); err != nil {
			return err
		}
	}
	return batch.Flush(ctx, client)
}

// unordered sends all pipelines of the poll side by side and produces as they are answered.
func (c *consumer) unordered(ctx context.Context, client *kgo.Client, records []*kgo.Record) error {
	batch := c.NewBatch(client)
	var group errgroup.Group
	for chunk := range slices.Chunk(records, c.pipeline) {
		group.Go(func() error { return c.forward(ctx, batch, chunk) })
	}
	if err := group.Wait(); err != nil {
		return err
	}
	return batch.Flush(ctx, client)
}

// forward produces those records whose key is new.
func (c *consumer) forward(ctx context.Context, batch *member.Batch, records []*kgo.Record) error {
	set := make([]*redis.BoolCmd, len(records))
	_, err := c.redis.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		for i, r := range records {
			set[i] = pipe.SetNX(ctx, c.prefix+member.ID(r), 1, c.ttl)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("set: %w", err)
	}
	for i, r := range records {
		if set[i].Val() {
			batch.Add(ctx, r)
		}
	}
	return nil
}
