package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
)

const (
	demoOrders     = 1000
	demoPartitions = 4
	demoCopies     = demoOrders / 10
)

// demo runs the consumer on a Kafka in this process, until it has read all that is there.
func demo(ctx context.Context, s settings, ship effect) (err error) {
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(demoPartitions, s.topic))
	if err != nil {
		return fmt.Errorf("start the kafka in this process: %w", err)
	}
	defer cluster.Close()
	if s.data, err = os.MkdirTemp("", "consumer-"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(s.data)) }()
	s.brokers, s.records = cluster.ListenAddrs(), demoOrders+demoCopies
	if err := produceOrders(ctx, s); err != nil {
		return fmt.Errorf("produce orders: %w", err)
	}
	return run(ctx, s, ship)
}

// produceOrders sends every tenth order twice: a producer that got no answer sends it again, and
// the copy may be on another partition.
func produceOrders(ctx context.Context, s settings) error {
	client, err := kgo.NewClient(kgo.SeedBrokers(s.brokers...),
		kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		return err
	}
	defer client.Close()
	var records []*kgo.Record
	for n := range demoOrders {
		records = append(records, order(s, n, 0))
		if n%10 == 0 {
			records = append(records, order(s, n, 1))
		}
	}
	return client.ProduceSync(ctx, records...).FirstErr()
}

func order(s settings, n, copied int) *kgo.Record {
	return &kgo.Record{
		Topic: s.topic, Partition: int32((n + copied) % demoPartitions),
		Value:   fmt.Appendf(nil, `{"order": %d, "item": "teapot"}`, n),
		Headers: []kgo.RecordHeader{{Key: s.header, Value: fmt.Appendf(nil, "order-%04d", n)}},
	}
}
