package chaos_test

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/dedup/cassandra"
	"github.com/kdedup/kdedup/forwarder"
)

// place is where a record is in its topic.
type place struct {
	Partition int32
	Offset    int64
}

func (p place) String() string { return fmt.Sprintf("[%d]@%d", p.Partition, p.Offset) }

// seen is what the check keeps of a record.
type seen struct {
	place
	topic  string
	id     string
	at     time.Time
	digest [16]byte // of everything that a consumer sees
	source place    // on the duplicates topic: the input record
	note   string   // on the duplicates topic: what kdedup says about it
}

func (r *seen) String() string {
	return fmt.Sprintf("%s%v of %s %s", r.topic, r.place, r.at.UTC().Format("15:04:05.000"), r.note)
}

// contents is a topic, in the order of its partitions.
type contents struct {
	all      []*seen
	byID     map[string][]*seen
	byDigest map[[16]byte]*seen
}

// read returns what is committed. It first waits until no transaction is open: the last ones may be
// those of processes that are gone, which the broker ends after their timeout.
func (s *storm) read(topic string) *contents {
	s.t.Helper()
	open := s.ends(topic)
	c := &contents{byID: make(map[string][]*seen), byDigest: make(map[[16]byte]*seen)}
	if len(open) == 0 {
		return c
	}
	client, err := kgo.NewClient(kgo.SeedBrokers(s.world.kafka.Addr()), kgo.ConsumeTopics(topic), kgo.KeepControlRecords(),
		kgo.ConsumeStartOffset(kgo.NewOffset().AtStart()), kgo.FetchIsolationLevel(kgo.ReadCommitted()))
	if err != nil {
		s.t.Fatal(err)
	}
	defer client.Close()
	for len(open) > 0 {
		fetches := client.PollFetches(s.t.Context())
		if err := fetches.Err(); err != nil {
			s.t.Fatal(err)
		}
		fetches.EachRecord(func(r *kgo.Record) {
			if !r.Attrs.IsControl() {
				c.add(r)
			}
			if r.Offset+1 >= open[r.Partition] {
				delete(open, r.Partition)
			}
		})
	}
	return c
}

// ends returns the ends of the partitions that are not empty, when nothing is open below them.
func (s *storm) ends(topic string) map[int32]int64 {
	s.t.Helper()
	open := make(map[int32]int64)
	s.eventually("an end of all transactions on "+topic, func() error {
		stable, err := s.admin.ListCommittedOffsets(s.t.Context(), topic)
		if err != nil {
			return err
		}
		ends, err := s.admin.ListEndOffsets(s.t.Context(), topic)
		if err != nil {
			return err
		}
		clear(open)
		ends.Each(func(end kadm.ListedOffset) {
			at, _ := stable.Lookup(topic, end.Partition)
			if at.Offset < end.Offset {
				err = fmt.Errorf("partition %d is committed up to %d of %d", end.Partition, at.Offset, end.Offset)
			}
			if end.Offset > 0 {
				open[end.Partition] = end.Offset
			}
		})
		return err
	})
	return open
}

func (c *contents) add(r *kgo.Record) {
	s := &seen{
		place: place{r.Partition, r.Offset}, topic: r.Topic, at: r.Timestamp,
		id: headerOf(r, idHeader), digest: digest(r),
	}
	if verdict := headerOf(r, forwarder.HeaderVerdict); verdict != "" {
		s.source.Partition = int32(number(headerOf(r, forwarder.HeaderSourcePartition)))
		s.source.Offset = number(headerOf(r, forwarder.HeaderSourceOffset))
		s.note = fmt.Sprintf("says: %v is a %s of [%s]@%s, claimed %s", s.source, verdict,
			headerOf(r, forwarder.HeaderOwnerPartition), headerOf(r, forwarder.HeaderOwnerOffset), headerOf(r, forwarder.HeaderClaimedAt))
	}
	c.all = append(c.all, s)
	c.byID[s.id] = append(c.byID[s.id], s)
	c.byDigest[s.digest] = s
}

func headerOf(r *kgo.Record, key string) string {
	for _, h := range r.Headers {
		if h.Key == key {
			return string(h.Value)
		}
	}
	return ""
}

// number of a header that kdedup wrote; what is none leads nowhere, which the check notices.
func number(text string) int64 {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return -1
	}
	return n
}

// digest covers key, value, headers and timestamp, each with its length, and tells null from empty.
func digest(r *kgo.Record) (d [16]byte) {
	var b []byte
	field := func(data []byte) {
		n := int64(len(data))
		if data == nil {
			n = -1
		}
		b = binary.AppendVarint(b, n)
		b = append(b, data...)
	}
	field(r.Key)
	field(r.Value)
	for _, h := range r.Headers {
		field([]byte(h.Key))
		field(h.Value)
	}
	field(fmt.Append(nil, r.Timestamp.UnixMilli()))
	sum := sha256.Sum256(b)
	copy(d[:], sum[:])
	return d
}

// claimOf says what the store knows about an ID.
func (s *storm) claimOf(id string) string {
	ctx, cancel := context.WithTimeout(s.t.Context(), time.Minute)
	defer cancel()
	store, err := cassandra.Open(ctx, storeOptions(s.world, s.keyspace), prometheus.NewRegistry())
	if err != nil {
		return err.Error()
	}
	defer store.Close()
	scope := dedup.Scope{ConsumerGroup: s.group(), Name: s.input, TTL: 7 * 24 * time.Hour, Buckets: buckets}
	answer, err := store.Lookup(ctx, scope, dedup.ID(id))
	if err != nil {
		return err.Error()
	}
	if answer.Outcome != dedup.Exists {
		return "nothing"
	}
	return fmt.Sprintf("[%d]@%d with epoch %d owns it since %s", answer.Owner.Partition, answer.Owner.Offset,
		answer.Owner.LeaderEpoch, answer.ClaimedAt.UTC().Format("15:04:05.000"))
}
