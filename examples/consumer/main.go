// Consumer ships each order of a Kafka topic once, although some orders are on it twice. It claims
// message IDs with package dedup in its own loop, without the sidecar. See README.md beside this
// file.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/dedup/embedded"
	"github.com/kdedup/kdedup/dedup/messageid"
)

// settings are the command line.
type settings struct {
	brokers      []string
	topic, group string
	header       string        // that has the message ID
	ttl          time.Duration // how late a copy may come
	data         string        // directory of the claims
	records      int           // to end after; 0: at a signal
}

func main() {
	s := settings{}
	brokers := flag.String("brokers", "",
		"addresses of Kafka, with commas; none: a Kafka in this process, with orders on it")
	flag.StringVar(&s.topic, "topic", "orders", "topic to read")
	flag.StringVar(&s.group, "group", "shipping", "consumer group")
	flag.StringVar(&s.header, "header", "message-id", "header that has the message ID")
	flag.DurationVar(&s.ttl, "ttl", 7*24*time.Hour, "how late a copy may come and be known as one")
	flag.StringVar(&s.data, "data", "consumer-data",
		"directory of the claims, for one process; unused with the Kafka in this process")
	flag.IntVar(&s.records, "records", 0, "end after this `NUMBER` of records; 0: at a signal")
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var err error
	if *brokers == "" {
		err = demo(ctx, s, ship)
	} else {
		s.brokers = strings.Split(*brokers, ",")
		err = run(ctx, s, ship)
	}
	if err != nil {
		slog.Error("stopped", "error", err)
		os.Exit(1)
	}
}

// ship is the effect that must not happen twice. Here it only looks at the order.
func ship(_ context.Context, order *kgo.Record) error {
	if len(order.Value) == 0 {
		return fmt.Errorf("order at %d/%d is empty", order.Partition, order.Offset)
	}
	return nil
}

// run consumes until the context ends, or as many records as the settings say.
func run(ctx context.Context, s settings, ship effect) (err error) {
	extractor, err := messageid.New(messageid.Source{From: "header", Name: s.header})
	if err != nil {
		return err
	}
	store, err := embedded.Open(embedded.Options{Path: s.data, Logger: slog.Default()})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	scope := dedup.Scope{ConsumerGroup: s.group, Name: s.topic, TTL: s.ttl, Buckets: 64,
		Extractor: extractor.String()}
	if err := store.Register(ctx, scope); err != nil {
		return err
	}
	client, err := join(s)
	if err != nil {
		return err
	}
	defer client.CloseAllowingRebalance()

	c := &consumer{
		client: client, ship: ship, records: s.records,
		deduper: dedup.New(scope, store, dedup.Options{
			Extractor: extractor, Logger: slog.Default(),
		}),
	}
	err = c.run(ctx)
	fmt.Printf("read %d records: shipped %d, dropped %d copies\n", c.read, c.shipped, c.copies)
	return err
}

// join makes a member of the group, which commits only when it is told to.
func join(s settings) (*kgo.Client, error) {
	return kgo.NewClient(
		kgo.SeedBrokers(s.brokers...),
		kgo.ConsumerGroup(s.group),
		kgo.ConsumeTopics(s.topic),
		kgo.DisableAutoCommit(),
		// What a producer took back must not claim an ID: the real record would be a copy of it.
		kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.ConsumeStartOffset(kgo.NewOffset().AtStart()),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		// A partition is not given away while a batch of it is under way.
		kgo.BlockRebalanceOnPoll(),
	)
}
