package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"sync"

	"github.com/twmb/franz-go/pkg/kgo"
)

// A value begins with the number of its message, and the rest follows from that. A header tells the
// record's place in what was produced.
const (
	benchHeader = 8
	placeHeader = "place"
)

// fill produces the input and returns of how many different messages it is. A copy is of any earlier
// message, on any partition.
func (b *pipelineBench) fill(ctx context.Context) (messages int, err error) {
	client, err := kgo.NewClient(kgo.SeedBrokers(b.config.Kafka.Brokers...), kgo.MaxBufferedRecords(50_000),
		kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerBatchCompression(kgo.NoCompression()))
	if err != nil {
		return 0, err
	}
	defer client.Close()
	var (
		failure error
		once    sync.Once
		random  = rand.New(rand.NewPCG(1, 2))
	)
	for serial := range b.records {
		number := messages
		if number > 0 && random.Float64() < b.flags.duplicates {
			number = random.IntN(messages)
		} else {
			messages++
		}
		client.Produce(ctx, b.record(number, serial, random.IntN(b.partitions)), func(_ *kgo.Record, err error) {
			if err != nil {
				once.Do(func() { failure = err })
			}
		})
	}
	if err := client.Flush(ctx); err != nil {
		return messages, err
	}
	return messages, failure
}

func (b *pipelineBench) record(number, place, partition int) *kgo.Record {
	return &kgo.Record{
		Topic: b.topic().Input, Partition: int32(partition), Value: b.value(number),
		Headers: []kgo.RecordHeader{
			{Key: orderIDHeader, Value: []byte(orderID(int32(number)))},
			{Key: placeHeader, Value: binary.BigEndian.AppendUint64(nil, uint64(place))},
		},
	}
}

func (b *pipelineBench) value(number int) []byte {
	value := make([]byte, b.size)
	binary.BigEndian.PutUint64(value, uint64(number))
	for i := benchHeader; i < len(value); i++ {
		value[i] = byte(number>>(i%4*8)) ^ byte(i)
	}
	return value
}

// benchCheck compares the clean topic with what was produced.
type benchCheck struct {
	lost, doubled, changed, misplaced int
}

// check reads the clean topic as a consumer does that sees only committed transactions.
func (b *pipelineBench) check(ctx context.Context, messages int) (found benchCheck, err error) {
	seen := make([]bool, messages)
	last := make(map[int32]uint64)
	err = readTopic(ctx, b.config.Kafka.Brokers, b.topic().Output, func(r *kgo.Record) bool {
		place := binary.BigEndian.Uint64(append(r.Headers[len(r.Headers)-1].Value, make([]byte, 8)...))
		if before, ok := last[r.Partition]; ok && place <= before {
			found.misplaced++
		}
		last[r.Partition] = place
		number := uint64(messages)
		if len(r.Value) >= benchHeader {
			number = binary.BigEndian.Uint64(r.Value)
		}
		switch {
		case number >= uint64(messages) || !bytes.Equal(r.Value, b.value(int(number))):
			found.changed++
		case seen[number]:
			found.doubled++
		default:
			seen[number] = true
		}
		return true
	})
	for _, ok := range seen {
		if !ok {
			found.lost++
		}
	}
	return found, err
}

func (c benchCheck) results() []result {
	return []result{
		{"lost", c.lost, ""}, {"doubled", c.doubled, ""}, {"changed", c.changed, ""}, {"out of order", c.misplaced, ""},
	}
}

func (c benchCheck) err() error {
	if c.lost+c.doubled+c.changed+c.misplaced > 0 {
		return fmt.Errorf("the clean topic is wrong: %d lost, %d doubled, %d changed, %d out of order", c.lost, c.doubled, c.changed, c.misplaced)
	}
	return nil
}
