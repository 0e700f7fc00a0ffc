package e2e_test

import (
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/internal/testkit"
)

// 10 batches of 60 kilobytes each, in one fetch of each partition, that unpack to 600 MB.
func TestBatchesThatUnpackToGigabytesTakeBoundedMemory(t *testing.T) {
	t.Parallel()
	const records, size = 10, 60 << 20
	d := deployAt(t, place{brokers: testkit.Kafka(t), store: embeddedStore(t)}, exactlyOnce)
	packing, err := kgo.NewClient(kgo.SeedBrokers(d.brokers...),
		kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.MaxBufferedRecords(1),
		kgo.ProducerBatchCompression(kgo.GzipCompression()), kgo.ProducerBatchMaxBytes(2*size),
		kgo.BrokerMaxWriteBytes(4*size))
	if err != nil {
		t.Fatal(err)
	}
	defer packing.Close()
	zeros := make([]byte, size)
	for i := range records {
		r := d.record(i, 0, i)
		r.Partition, r.Value = int32(i%2), zeros
		if err := packing.ProduceSync(t.Context(), r).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	one := d.launch(kdedup, "one", "GOMEMLIMIT=900MiB") // as in a container with 1 GiB
	testkit.Eventually(t, 10*time.Minute, "all records, forwarded or dead-lettered", func() bool {
		return one.outcomes()["forwarded"]+one.outcomes()["dead_lettered"] == records
	})
	if peak := peakOf(one); peak > mostMemory {
		t.Errorf("the process had %d MiB", peak>>20)
	} else {
		t.Logf("the process had %d MiB", peak>>20)
	}
}
