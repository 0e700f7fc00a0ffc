package forwarder

import (
	"math"
	"slices"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Topics are where a pipeline's records go and what these topics admit.
type Topics struct {
	Output     string
	Duplicates string          // optional
	DeadLetter string          // optional
	MaxBytes   map[string]int  // max.message.bytes by topic, as the broker has it now
	Compacted  map[string]bool // topics that refuse records without a key, as far as known
	outdated   bool            // see Outdated
	ByKey      bool            // choose the output partition by key, not by the input's number
	// Compression of what is sent: that of the input, or else a codec, of which the zero value is
	// none.
	Input       *InputCodec
	Compression kgo.CompressionCodec
}

// Outdated reports whether a Send has found out that a topic refuses as too large what MaxBytes
// admits: its limit was lowered since.
func (t *Topics) Outdated() bool { return t.outdated }

// Names lists the topics that there are.
func (t *Topics) Names() []string {
	return slices.DeleteFunc([]string{t.Output, t.Duplicates, t.DeadLetter},
		func(name string) bool {
			return name == ""
		})
}

// defaultMaxBytes is the broker's default of max.message.bytes.
const defaultMaxBytes = 1048588

func (t *Topics) limit(topic string) int {
	if n, ok := t.MaxBytes[topic]; ok {
		return n
	}
	return defaultMaxBytes
}

// Producer returns the options of a client that sends what goes to the topics.
func (t *Topics) Producer() []kgo.Opt {
	return []kgo.Opt{
		kgo.RecordPartitioner(t.partitioner()),
		t.compression(),
		// Nothing is sent while a batch is added: what is added behind a refused batch would be
		// written, out of order.
		kgo.ManualFlushing(),
		kgo.ProducerBatchMaxBytesFn(func(topic string) int32 {
			return int32(min(t.limit(topic), math.MaxInt32/4)) + lengthPrefix
		}),
		// A request is assembled in one piece of memory, which the client keeps.
		kgo.BrokerMaxWriteBytes(int32(2 * t.largest())),
	}
}

func (t *Topics) compression() kgo.Opt {
	if t.Input != nil {
		return kgo.WithCompressor(t.Input)
	}
	return kgo.ProducerBatchCompression(t.Compression)
}

// lengthPrefix is what the client counts to a batch and the broker does not.
const lengthPrefix = 4

func (t *Topics) largest() int {
	largest := defaultMaxBytes
	for _, n := range t.MaxBytes {
		largest = max(largest, n)
	}
	return min(largest, 512<<20)
}

// partitioner keeps the number of the input partition. The duplicates and dead-letter topics may
// have fewer partitions; there the number wraps. Other topics, the fence above all, take the number
// that their record carries.
func (t *Topics) partitioner() kgo.Partitioner {
	preserve := kgo.BasicConsistentPartitioner(func(topic string) func(*kgo.Record, int) int {
		if topic == t.Duplicates || topic == t.DeadLetter {
			return func(r *kgo.Record, n int) int { return int(r.Partition) % n }
		}
		return func(r *kgo.Record, _ int) int { return int(r.Partition) }
	})
	if !t.ByKey {
		return preserve
	}
	return byKey{output: t.Output, preserve: preserve, hash: kgo.StickyKeyPartitioner(nil)}
}

// byKey hashes keys as the Java client does, on the output topic only.
type byKey struct {
	output         string
	preserve, hash kgo.Partitioner
}

// ForTopic implements kgo.Partitioner.
func (b byKey) ForTopic(topic string) kgo.TopicPartitioner {
	if topic == b.output {
		return b.hash.ForTopic(topic)
	}
	return b.preserve.ForTopic(topic)
}
