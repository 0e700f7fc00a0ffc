package consumer_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kdedup/kdedup/consumer"
	"github.com/kdedup/kdedup/consumer/client"
	"github.com/kdedup/kdedup/internal/testkit"
)

// counter is a fake cluster with an input of one partition, whose commits of offsets can be held
// up.
type counter struct {
	t       *testing.T
	cluster *kfake.Cluster
	brokers []string
	client  *kgo.Client
	input   string
	fences  string
	asked   chan struct{} // a commit of offsets came
	answer  chan struct{} // closed when it, and all later ones, may be answered
}

func newCounter(t *testing.T) *counter {
	t.Helper()
	cluster, brokers := testkit.FakeKafka(t)
	c := &counter{t: t, cluster: cluster, brokers: brokers, client: testkit.KafkaClient(t, brokers)}
	c.input, c.fences = testkit.Topic(t, brokers, "orders", 1, nil),
		testkit.Topic(t, brokers, "fences", 1, nil)
	c.produce("one")
	return c
}

func (c *counter) produce(value string) {
	c.t.Helper()
	if err := c.client.ProduceSync(
		c.t.Context(), &kgo.Record{Topic: c.input, Value: []byte(value)},
	).FirstErr(); err != nil {
		c.t.Fatal(err)
	}
}

func (c *counter) join(member string) *consumer.AtLeastOnce {
	c.t.Helper()
	session, err := client.JoinAtLeastOnce(c.t.Context(),
		memberOptions(c.t, c.brokers, c.input, c.fences, member))
	if err != nil {
		c.t.Fatal(err)
	}
	return session
}

// hold keeps back the answers to commits of offsets.
func (c *counter) hold() {
	c.asked, c.answer = make(chan struct{}, 100), make(chan struct{})
	c.cluster.ControlKey(int16(kmsg.OffsetCommit), func(kmsg.Request) (kmsg.Response, error, bool) {
		c.cluster.KeepControl()
		c.asked <- struct{}{}
		c.cluster.SleepControl(func() { <-c.answer })
		return nil, nil, false
	})
}

// holdFirst joins a session whose first batch is handled, but for its offsets: they are on their
// way.
func (c *counter) holdFirst() *consumer.AtLeastOnce {
	c.t.Helper()
	s := c.join("a")
	c.hold()
	c.handle(s)
	<-c.asked
	return s
}

// refuse has the next commit of offsets refused.
func (c *counter) refuse() {
	c.cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.OffsetCommit}, Err: kerr.IllegalGeneration,
		Count: 1})
}

// handle takes the next batch through the session, but for its offsets.
func (c *counter) handle(s *consumer.AtLeastOnce) {
	c.t.Helper()
	batch := c.poll(s)
	if err := errors.Join(
		s.Begin(c.t.Context(), batch), s.Commit(c.t.Context(), batch),
	); err != nil {
		c.t.Fatal(err)
	}
}

func (c *counter) poll(s *consumer.AtLeastOnce) *consumer.Batch {
	c.t.Helper()
	batch, err := s.Poll(c.t.Context())
	if err != nil || batch == nil {
		c.t.Fatal(batch, err)
	}
	return batch
}

func (c *counter) committed() int64 {
	offsets, err := kadm.NewClient(c.client).FetchOffsets(c.t.Context(), c.input+"-group")
	if err != nil {
		c.t.Fatal(err)
	}
	at, ok := offsets.Lookup(c.input, 0)
	if !ok {
		return -1
	}
	return at.At
}

func TestTheNextBatchIsPolledWhileOffsetsAreCommitted(t *testing.T) {
	c := newCounter(t)
	s := c.holdFirst()
	defer s.Close()
	c.produce("two")
	batch := c.poll(s)
	begun := make(chan error, 1)
	go func() { begun <- s.Begin(t.Context(), batch) }()
	select {
	case err := <-begun:
		t.Fatalf("forwards began before the offsets were committed: %v", err)
	case <-time.After(50 * time.Millisecond):
	}
	close(c.answer)
	if err := <-begun; err != nil {
		t.Fatal(err)
	}
	if got := c.committed(); got != 1 {
		t.Errorf("the group's offset is %d", got)
	}
}

// Whoever hears of it first: the session must be closed, and its successor finds the fence.
func TestRefusedOffsetsEndTheSession(t *testing.T) {
	cases := []struct {
		name string
		next func(c *counter, s *consumer.AtLeastOnce) error
	}{
		{"an idle poll", func(_ *counter, s *consumer.AtLeastOnce) error {
			_, err := s.Poll(t.Context())
			return err
		}},
		{"the begin of the next forwards", func(c *counter, s *consumer.AtLeastOnce) error {
			s.AwaitOffsets()
			return s.Begin(t.Context(), nil)
		}},
		{"a batch that is given back", func(_ *counter, s *consumer.AtLeastOnce) error {
			return s.Abort(t.Context(), &consumer.Batch{}, consumer.ErrRevoked)
		}},
		{"the last poll", func(_ *counter, s *consumer.AtLeastOnce) error {
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			_, err := s.Poll(ctx)
			return err
		}},
	}
	for _, row := range cases {
		t.Run(row.name, func(t *testing.T) {
			c := newCounter(t)
			s := c.join("a")
			defer s.Close()
			c.refuse()
			c.handle(s)
			if err := row.next(c, s); !errors.Is(err, kerr.IllegalGeneration) ||
				errors.Is(err, consumer.ErrAborted) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestAPartitionGoesToItsNextOwnerWithItsOffset(t *testing.T) {
	c := newCounter(t)
	first := c.holdFirst()
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		first.Close()
	}()
	second := c.join("b")
	defer second.Close()
	c.produce("two")
	select {
	case <-closed:
		t.Fatal("the member left before its offsets were committed")
	case <-time.After(50 * time.Millisecond):
	}
	close(c.answer)
	<-closed
	if batch := c.poll(second); batch.Spans[0].First != 1 || batch.Spans[0].Again {
		t.Errorf("the next owner begins with %+v", batch.Spans[0])
	}
}

func TestARevocationWaitsForTheOffsets(t *testing.T) {
	c := newCounter(t)
	s := c.holdFirst()
	defer s.Close()
	revoked := make(chan struct{})
	go func() {
		defer close(revoked)
		s.Release(0)
	}()
	select {
	case <-revoked:
		t.Error("it did not wait")
	case <-time.After(50 * time.Millisecond):
	}
	close(c.answer)
	<-revoked
	if got := c.committed(); got != 1 {
		t.Errorf("the group's offset is %d", got)
	}
}
