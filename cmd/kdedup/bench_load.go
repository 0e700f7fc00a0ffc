package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kgo"
)

// A value begins with the number of its message, and the rest follows from that. A header tells the
// record's place in what was produced.
const (
	benchHeader = 8
	placeHeader = "place"
)

// benchLoad is what was produced.
type benchLoad struct {
	messages int // different ones
}

// fill produces the input. A copy is of any earlier message, on any partition.
func (b *pipelineBench) fill(ctx context.Context) (benchLoad, error) {
	client, err := kgo.NewClient(kgo.SeedBrokers(b.config.Kafka.Brokers...), kgo.MaxBufferedRecords(50_000),
		kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerBatchCompression(kgo.NoCompression()))
	if err != nil {
		return benchLoad{}, err
	}
	defer client.Close()
	var (
		load    benchLoad
		failure error
		once    sync.Once
		random  = rand.New(rand.NewPCG(1, 2))
	)
	for serial := range b.records {
		number := load.messages
		if number > 0 && random.Float64() < b.flags.duplicates {
			number = random.IntN(load.messages)
		} else {
			load.messages++
		}
		client.Produce(ctx, b.record(number, serial, random.IntN(b.partitions)), func(_ *kgo.Record, err error) {
			if err != nil {
				once.Do(func() { failure = err })
			}
		})
	}
	if err := client.Flush(ctx); err != nil {
		return load, err
	}
	return load, failure
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
func (b *pipelineBench) check(ctx context.Context, load benchLoad) (found benchCheck, err error) {
	seen := make([]bool, load.messages)
	last := make(map[int32]uint64)
	err = readTopic(ctx, b.config.Kafka.Brokers, b.topic().Output, func(r *kgo.Record) bool {
		place := binary.BigEndian.Uint64(append(r.Headers[len(r.Headers)-1].Value, make([]byte, 8)...))
		if before, ok := last[r.Partition]; ok && place <= before {
			found.misplaced++
		}
		last[r.Partition] = place
		number := uint64(load.messages)
		if len(r.Value) >= benchHeader {
			number = binary.BigEndian.Uint64(r.Value)
		}
		switch {
		case number >= uint64(load.messages) || !bytes.Equal(r.Value, b.value(int(number))):
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

// sumsOf returns the total seconds of each duration histogram.
func sumsOf(gatherer prometheus.Gatherer) map[string]float64 {
	sums := make(map[string]float64)
	families, err := gatherer.Gather()
	if err != nil {
		return sums // what a broken collector leaves out shows as zero
	}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			sums[family.GetName()] += metric.GetHistogram().GetSampleSum()
		}
	}
	return sums
}
