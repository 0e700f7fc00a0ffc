package forwarder

import (
	"sync/atomic"
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kdedup/kdedup/internal/testkit"
)

// What is added behind a batch that the broker refuses would be written, out of order. A client
// that lingers for no time sends a record within the first of these round trips.
func TestNothingIsSentBeforeTheFlush(t *testing.T) {
	const roundTrips = 100
	cluster, brokers := testkit.FakeKafka(t, kfake.NumBrokers(1), kfake.SeedTopics(1, "out"))
	var produces atomic.Int32
	cluster.ControlKey(int16(kmsg.Produce), func(kmsg.Request) (kmsg.Response, error, bool) {
		cluster.KeepControl()
		produces.Add(1)
		return nil, nil, false
	})
	topics := Topics{Output: "out"}
	client, err := kgo.NewClient(append(topics.Producer(), kgo.SeedBrokers(brokers...),
		kgo.DefaultProduceTopic("out"))...)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	send := func() {
		r := &kgo.Record{Value: []byte("v")}
		client.Produce(t.Context(), r, func(_ *kgo.Record, err error) {
			if err != nil {
				t.Error(err)
			}
		})
	}
	flush := func() {
		if err := client.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	send() // the client knows the topic and has its producer ID from here on
	flush()
	before := produces.Load()
	send()
	for range roundTrips {
		if err := client.Ping(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if n := produces.Load() - before; n > 0 {
		t.Errorf("%d requests before the flush", n)
	}
	flush()
	if n := produces.Load() - before; n != 1 {
		t.Errorf("%d requests with the flush, want one", n)
	}
}
