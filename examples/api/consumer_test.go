package api

import (
	"fmt"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/internal/testkit"
)

// The topic has each order twice. The consumer dies while it sends the mail of one.
func TestAConsumerThatIsKilledInItsEffectSkipsNoneAndRunsNoCopy(t *testing.T) {
	for _, l := range languages {
		t.Run(l.name, func(t *testing.T) {
			brokers := testkit.Kafka(t)
			l.ready(t)
			testKilledConsumer(t, l, brokers)
		})
	}
}

func testKilledConsumer(t *testing.T, l *language, brokers []string) {
	const orders = 20
	topic := testkit.Topic(t, brokers, "orders", 1, nil)
	client, err := kgo.NewClient(kgo.SeedBrokers(brokers...), kgo.DefaultProduceTopic(topic))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	produce := func(key string) {
		t.Helper()
		record := &kgo.Record{Key: []byte(key), Value: []byte("{}")}
		if err := client.ProduceSync(t.Context(), record).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		for n := range orders {
			produce(fmt.Sprint("order-", n))
		}
	}
	w := newWorld(t)
	env := []string{"API=" + serve(t), "EFFECT=" + w.URL, "KAFKA=" + brokers[0],
		"TOPIC=" + topic, "GROUP=" + topic + "-mails"}
	w.hang("order-7")
	e := l.start(t, l.consumer, env...)
	select {
	case <-w.hung:
	case <-time.After(2 * time.Minute):
		t.Fatal("the effect did not begin")
	}
	e.kill()
	l.start(t, l.consumer, env...)
	produce("last")
	testkit.Eventually(t, 2*time.Minute, "the effect of the last message", func() bool {
		return len(w.of("last")) > 0
	})
	for n := range orders {
		attempts := w.of(fmt.Sprint("order-", n))
		want := fmt.Sprintf(`%d`, n)
		if len(attempts) == 0 || len(attempts) > 2 || n == 7 && len(attempts) != 2 {
			t.Errorf("order %d: %d effects: %v", n, len(attempts), attempts)
		}
		for _, body := range attempts {
			var offset int
			if _, err := fmt.Sscanf(withoutSpace(body), `{"offset":%d}`, &offset); err != nil ||
				offset != n {
				t.Errorf("order %d: the effect of the copy %s ran, want that of %s", n, body, want)
			}
		}
	}
}
