package e2e_test

import (
	"bytes"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// producerTimeout is within what any of the brokers admits.
const producerTimeout = 10 * time.Second

// write produces records as different producers do, some of them in transactions, of which some are
// aborted.
func (o *trial) write() {
	o.t.Helper()
	for range 3 + o.random.IntN(4) {
		transactional := o.chance(40)
		opts := []kgo.Opt{
			kgo.SeedBrokers(o.brokers...), kgo.RecordPartitioner(kgo.ManualPartitioner()),
			kgo.DefaultProduceTopic(o.input),
			kgo.ProducerBatchCompression(o.codec()), kgo.ProducerBatchMaxBytes(64 << 20),
			kgo.BrokerMaxWriteBytes(100 << 20),
			kgo.ProducerLinger(0),
		}
		if transactional {
			opts = append(opts, kgo.TransactionalID(fmt.Sprintf("%s-%d", o.input, o.serial)),
				kgo.TransactionTimeout(producerTimeout))
		}
		client, err := kgo.NewClient(opts...)
		if err != nil {
			o.t.Fatal(err)
		}
		if transactional {
			if err := client.BeginTransaction(); err != nil {
				o.t.Fatal(err)
			}
		}
		for range 50 + o.random.IntN(300) {
			o.serial++
			// Those that the input does not take are not there.
			_ = client.ProduceSync(o.t.Context(), o.oddRecord(o.serial)).FirstErr()
		}
		if transactional {
			if err := client.EndTransaction(
				o.t.Context(), kgo.TransactionEndTry(o.chance(70)),
			); err != nil {
				o.t.Logf("end transaction: %v", err) // a refused record can spoil it
			}
		}
		client.Close()
	}
}

func (o *trial) codec() kgo.CompressionCodec {
	return one(o.random, kgo.NoCompression(), kgo.GzipCompression(), kgo.SnappyCompression(),
		kgo.Lz4Compression(), kgo.ZstdCompression())
}

// oddRecord has a header with its serial number, by which the check knows it.
func (o *trial) oddRecord(serial int) *kgo.Record {
	id := serial
	if o.chance(15) {
		id = max(1, serial-o.random.IntN(200)) // a copy, perhaps of one that is not there
	}
	r := &kgo.Record{
		Partition: o.random.Int32N(o.partitions), Timestamp: o.timestamp(), Key: o.key(id),
		Value:   o.value(),
		Headers: []kgo.RecordHeader{{Key: "serial", Value: fmt.Append(nil, serial)}},
	}
	if !o.chance(5) {
		r.Headers = append(r.Headers,
			kgo.RecordHeader{Key: o.idHeader(), Value: fmt.Appendf(nil, "%s/%d", o.input, id)})
	}
	if o.chance(3) {
		for i := range 1 + o.random.IntN(2000) {
			r.Headers = append(r.Headers, kgo.RecordHeader{Key: fmt.Sprint("h", i%10)})
		}
	}
	return r
}

// idHeader is what this producer calls the header with the ID.
func (o *trial) idHeader() string {
	if !o.spellings {
		return "message-id"
	}
	return one(o.random, "message-id", "Message-Id", "Message-ID", "MESSAGE-ID", "messAGE-iD")
}

func (o *trial) key(id int) []byte {
	switch n := o.random.IntN(100); {
	case n < 15:
		return nil
	case n < 20:
		return []byte{}
	case n < 22:
		return bytes.Repeat([]byte("k"), o.random.IntN(30_000))
	}
	return fmt.Append(nil, "customer-", id%100)
}

// value is small, or near a limit, or far beyond one before it is compressed.
func (o *trial) value() []byte {
	switch n := o.random.IntN(1000); {
	case n < 20:
		return nil
	case n < 40:
		return []byte{}
	case n < 50:
		return bytes.Repeat([]byte("v"), 3<<20)
	case n < 70:
		return o.incompressible(one(o.random, 20_000, 100_000, 1<<20) - 400 + o.random.IntN(800))
	case n < 90:
		return o.incompressible(o.random.IntN(o.inputMax))
	}
	return o.incompressible(o.random.IntN(500))
}

func (o *trial) incompressible(n int) []byte {
	value := make([]byte, n)
	for i := range value {
		value[i] = byte(o.random.Uint32())
	}
	return value
}

// timestamp is now, or that of a wrong clock, a wrong unit, or old data.
func (o *trial) timestamp() time.Time {
	now := time.Now().Truncate(time.Millisecond)
	switch o.random.IntN(25) {
	case 0:
		return now.Add(2 * time.Hour)
	case 1:
		return now.Add(-2 * time.Hour)
	case 2:
		return now.AddDate(-1, 0, 0)
	case 3:
		return time.UnixMilli(0)
	case 4:
		return time.UnixMilli(now.Unix()) // seconds for milliseconds
	case 5:
		return time.Date(2262, time.January, 1, 0, 0, 0, 0, time.UTC)
	}
	return now
}
