package kafkalog

import (
	"context"
	"fmt"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/dedup/claimlog"
)

// registry keeps values in a topic of one partition, which nothing is ever deleted from: a record
// for each proposal, and one without a value for each withdrawal. The first proposal since the last
// withdrawal stands.
type registry struct {
	logs  *Logs
	topic string
}

var _ claimlog.Registry = (*registry)(nil)

// Registry implements claimlog.Opener.
func (l *Logs) Registry(group string) claimlog.Registry {
	return &registry{l, l.registryTopic(group)}
}

// Decide implements claimlog.Registry.
func (r *registry) Decide(
	ctx context.Context, key string, proposal []byte,
) (stands []byte, err error) {
	err = r.with(ctx, func(s *session) error {
		if err := s.readToEnd(ctx); err != nil || s.values[key] != nil {
			return err
		}
		return s.write(ctx, key, proposal)
	}, func(s *session) { stands = s.values[key] })
	return stands, err
}

// Decided implements claimlog.Registry.
func (r *registry) Decided(ctx context.Context, key string) (stands []byte, err error) {
	err = r.with(ctx, func(s *session) error {
		return s.readToEnd(ctx)
	}, func(s *session) { stands = s.values[key] })
	return stands, err
}

// Withdraw implements claimlog.Registry.
func (r *registry) Withdraw(ctx context.Context, key string) error {
	return r.with(ctx, func(s *session) error {
		if err := s.readToEnd(ctx); err != nil || s.values[key] == nil {
			return err
		}
		return s.write(ctx, key, nil)
	}, func(*session) {})
}

// with works with the topic, from its beginning.
func (r *registry) with(ctx context.Context, work func(*session) error, then func(*session)) error {
	client, err := r.logs.client(
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{
			r.topic: {0: kgo.NewOffset().AtStart()}}),
		kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerLinger(0),
		kgo.RecordDeliveryTimeout(deliveryTimeout),
		kgo.FetchMaxWait(fetchWait), kgo.KeepControlRecords(),
	)
	if err != nil {
		return err
	}
	defer client.Close()
	s := &session{topic: r.topic, client: client, admin: kadm.NewClient(client),
		values: make(map[string][]byte)}
	if err = s.check(ctx); err == nil {
		err = work(s)
	}
	if err != nil {
		return fmt.Errorf("topic %s: %w", r.topic, err)
	}
	then(s)
	return nil
}

// session is one look at the registry.
type session struct {
	topic  string
	client *kgo.Client
	admin  *kadm.Client
	next   int64
	values map[string][]byte
}

// check refuses a topic that forgets.
func (s *session) check(ctx context.Context) error {
	if _, err := topicDetail(ctx, s.admin, s.topic); err != nil {
		return err
	}
	values, err := settings(ctx, s.admin, s.topic)
	if err != nil {
		return err
	}
	for key, want := range map[string]string{"cleanup.policy": "delete", "retention.ms": "-1",
		"retention.bytes": "-1"} {
		if values[key] != want {
			return fmt.Errorf("%s is %s and must be %s: what is registered must never be forgotten",
				key, values[key], want)
		}
	}
	return nil
}

func (s *session) readToEnd(ctx context.Context) error {
	ends, err := s.admin.ListEndOffsets(ctx, s.topic)
	if err == nil {
		err = ends.Error()
	}
	if err != nil {
		return err
	}
	end, _ := ends.Lookup(s.topic, 0)
	return s.readTo(ctx, end.Offset)
}

func (s *session) readTo(ctx context.Context, end int64) error {
	for s.next < end {
		fetches := s.client.PollFetches(ctx)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err := fetchError(s.topic, fetches); err != nil {
			return err
		}
		fetches.EachRecord(s.apply)
	}
	return nil
}

func (s *session) apply(r *kgo.Record) {
	key := string(r.Key)
	switch {
	case r.Attrs.IsControl(): // of a transaction of somebody else
	case r.Value == nil:
		delete(s.values, key)
	case s.values[key] == nil:
		s.values[key] = r.Value
	}
	s.next = r.Offset + 1
}

// write appends a record, and reads up to it: another one may have been faster.
func (s *session) write(ctx context.Context, key string, value []byte) error {
	record := &kgo.Record{Topic: s.topic, Partition: 0, Key: []byte(key), Value: value}
	written, err := s.client.ProduceSync(ctx, record).First()
	if err != nil {
		return err
	}
	return s.readTo(ctx, written.Offset+1)
}
