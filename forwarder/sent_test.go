package forwarder

import (
	"sync"
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kdedup/kdedup/internal/testkit"
)

// sentSize is the size of the batch that the client sends for one record.
func sentSize(t *testing.T, r *kgo.Record) int {
	t.Helper()
	cluster, brokers := testkit.FakeKafka(t, kfake.SeedTopics(1, "out"))
	var (
		mu   sync.Mutex
		size int
	)
	cluster.ControlKey(int16(kmsg.Produce), func(request kmsg.Request) (kmsg.Response, error,
		bool) {
		cluster.KeepControl()
		mu.Lock()
		defer mu.Unlock()
		size = len(request.(*kmsg.ProduceRequest).Topics[0].Partitions[0].Records)
		return nil, nil, false
	})
	client, err := kgo.NewClient(kgo.SeedBrokers(brokers...),
		kgo.ProducerBatchCompression(kgo.NoCompression()),
		kgo.ProducerBatchMaxBytes(4<<20), kgo.DisableIdempotentWrite(),
		kgo.RequiredAcks(kgo.LeaderAck()))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	out := *r
	out.Topic = "out"
	if err := client.ProduceSync(t.Context(), &out).FirstErr(); err != nil {
		t.Logf("the fake refuses the size: %v", err)
	}
	mu.Lock()
	defer mu.Unlock()
	return size
}
