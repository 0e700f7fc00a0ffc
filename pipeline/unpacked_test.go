package pipeline_test

import (
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/consumer/client"
	"github.com/kdedup/kdedup/internal/testkit"
)

// Some kilobytes that unpack to three megabytes, where one is allowed.
func TestABatchThatUnpacksToTooMuchHoldsItsPartitionByItself(t *testing.T) {
	event(t, 1, func(t *testing.T, s *site) {
		var allowed atomic.Int64
		allowed.Store(1 << 20)
		s.member = func(o *client.Options) { o.UnpackedBytes = int(allowed.Load()) }
		packing, err := kgo.NewClient(kgo.SeedBrokers(s.cluster.ListenAddrs()...),
			kgo.RecordPartitioner(kgo.ManualPartitioner()),
			kgo.ProducerBatchCompression(kgo.GzipCompression()), kgo.ProducerBatchMaxBytes(8<<20))
		if err != nil {
			t.Fatal(err)
		}
		defer packing.Close()
		s.produce(message(1, "a", "A"), message(1, "b", "B"))
		large := message(1, "large", strings.Repeat("0", 3<<20))
		large.Key = nil
		if err := packing.ProduceSync(t.Context(), large).FirstErr(); err != nil {
			t.Fatal(err)
		}
		s.produce(message(1, "c", "C"), message(0, "d", "D"))
		run := s.start("one")
		testkit.Eventually(t, 30*time.Second, "a partition that is held", func() bool {
			held := run.Held()
			return len(held) == 1 &&
				held[0] == "orders[1] held at offset 2: the batch unpacks to more than unpacked_bytes"
		})
		s.waitCommitted(3)
		if n := s.failures(); n > 0 {
			t.Errorf("the lanes failed %v times", n)
		}
		if err := run.stop(); err != nil {
			t.Error(err)
		}
		allowed.Store(8 << 20)
		s.start("two")
		s.waitCommitted(5)
		// the clean topic takes a megabyte
		if got := s.outcomes(); got["forwarded"] != 4 || got["dead_lettered"] != 1 {
			t.Errorf("the outcomes are %v", got)
		}
	})
}
