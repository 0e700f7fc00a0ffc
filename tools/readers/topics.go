package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kversion"
)

// topics are what clients read: one with transactions, and one for each codec.
type topics struct {
	admin        *kadm.Client
	transactions string
	codecs       []codec
	version      string // of the broker
}

type codec struct {
	name  string
	use   kgo.CompressionCodec
	topic string
}

// records of a transaction, and of a topic of one codec.
const records = 5

func produce(ctx context.Context, broker string) (*topics, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	prefix := fmt.Sprintf("readers-%x", time.Now().UnixNano())
	t := &topics{transactions: prefix + "-transactions"}
	client, err := kgo.NewClient(kgo.SeedBrokers(broker), kgo.TransactionalID(prefix),
		kgo.ProducerBatchCompression(kgo.NoCompression()))
	if err != nil {
		return nil, err
	}
	t.admin = kadm.NewClient(client)
	versions, err := t.admin.ApiVersions(ctx)
	if err != nil {
		return nil, err
	}
	versions.Each(func(v kadm.BrokerApiVersions) {
		raw := v.Raw()
		guess := kversion.FromApiVersionsResponse(raw)
		t.version = guess.VersionGuess()
	})
	for _, c := range []codec{{name: "none", use: kgo.NoCompression()},
		{name: "gzip", use: kgo.GzipCompression()}, {name: "snappy", use: kgo.SnappyCompression()},
		{name: "lz4", use: kgo.Lz4Compression()}, {name: "zstd", use: kgo.ZstdCompression()}} {
		c.topic = prefix + "-" + c.name
		t.codecs = append(t.codecs, c)
		if err := t.fill(ctx, broker, c); err != nil {
			return nil, err
		}
	}
	return t, t.fillTransactions(ctx, client)
}

func (t *topics) create(ctx context.Context, topic string) error {
	_, err := t.admin.CreateTopic(ctx, 1, 1, nil, topic)
	return err
}

func (t *topics) fill(ctx context.Context, broker string, c codec) error {
	if err := t.create(ctx, c.topic); err != nil {
		return err
	}
	client, err := kgo.NewClient(kgo.SeedBrokers(broker), kgo.ProducerBatchCompression(c.use))
	if err != nil {
		return err
	}
	defer client.Close()
	// Compression makes each batch smaller, or the client would write it without.
	for range records {
		r := &kgo.Record{Topic: c.topic, Value: []byte(strings.Repeat(c.name+" ", 100))}
		if err := client.ProduceSync(ctx, r).FirstErr(); err != nil {
			return err
		}
	}
	r := &kgo.Record{Topic: c.topic, Value: []byte("END")}
	return client.ProduceSync(ctx, r).FirstErr()
}

// fillTransactions has two aborted transactions of a producer between committed ones.
func (t *topics) fillTransactions(ctx context.Context, client *kgo.Client) error {
	if err := t.create(ctx, t.transactions); err != nil {
		return err
	}
	for i, end := range []kgo.TransactionEndTry{kgo.TryCommit, kgo.TryAbort, kgo.TryCommit,
		kgo.TryAbort, kgo.TryCommit} {
		if err := client.BeginTransaction(); err != nil {
			return err
		}
		kind := "aborted"
		if end == kgo.TryCommit {
			kind = "committed"
		}
		for range records {
			value := fmt.Sprintf("%s in %d", kind, i+1)
			r := &kgo.Record{Topic: t.transactions, Value: []byte(value)}
			if err := client.ProduceSync(ctx, r).FirstErr(); err != nil {
				return err
			}
		}
		if i == 4 {
			r := &kgo.Record{Topic: t.transactions, Value: []byte("END")}
			if err := client.ProduceSync(ctx, r).FirstErr(); err != nil {
				return err
			}
		}
		if err := client.EndTransaction(ctx, end); err != nil {
			return err
		}
	}
	return nil
}

func (t *topics) remove(ctx context.Context) {
	names := []string{t.transactions}
	for _, c := range t.codecs {
		names = append(names, c.topic)
	}
	_, _ = t.admin.DeleteTopics(ctx, names...) // they are small, and this is no part of the result
	t.admin.Close()
}
