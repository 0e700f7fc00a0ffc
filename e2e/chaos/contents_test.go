package chaos_test

import (
	"crypto/sha256"
	"fmt"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/forwarder"
	"github.com/kdedup/kdedup/internal/testkit"
)

// place is where a record is in its topic.
type place struct {
	Partition int32
	Offset    int64
}

func (p place) String() string { return fmt.Sprintf("[%d]@%d", p.Partition, p.Offset) }

// digest is of everything that a consumer sees of a record.
type digest [sha256.Size]byte

// seen is what the check keeps of a record.
type seen struct {
	place
	topic  string
	id     string
	at     time.Time
	digest digest
	source place  // on the duplicates topic: the input record
	note   string // on the duplicates topic: what kdedup says about it
}

func (r *seen) String() string {
	return fmt.Sprintf("%s%v of %s %s", r.topic, r.place, r.at.UTC().Format("15:04:05.000"), r.note)
}

// contents is a topic, in the order of its partitions.
type contents struct {
	all      []*seen
	byID     map[string][]*seen
	byDigest map[digest]*seen
}

// newContents are those of an empty topic.
func newContents() *contents {
	return &contents{byID: make(map[string][]*seen), byDigest: make(map[digest]*seen)}
}

// read returns what is committed. It first waits until no transaction is open: the last ones may be
// those of processes that are gone, which the broker ends after their timeout.
func (s *storm) read(topic string) *contents {
	s.t.Helper()
	s.waitStable(topic)
	c := newContents()
	testkit.ReadCommitted(s.t, topic, c.add, kgo.SeedBrokers(s.brokerOf(topic).Addr()))
	return c
}

// waitStable returns when no transaction is open on the topic.
func (s *storm) waitStable(topic string) {
	s.t.Helper()
	s.eventually("an end of all transactions on "+topic, func() error {
		stable, err := s.adminOf(topic).ListCommittedOffsets(s.t.Context(), topic)
		if err != nil {
			return err
		}
		ends, err := s.adminOf(topic).ListEndOffsets(s.t.Context(), topic)
		if err != nil {
			return err
		}
		ends.Each(func(end kadm.ListedOffset) {
			at, _ := stable.Lookup(topic, end.Partition)
			if at.Offset < end.Offset {
				err = fmt.Errorf("partition %d is committed up to %d of %d", end.Partition,
					at.Offset, end.Offset)
			}
		})
		return err
	})
}

func (c *contents) add(r *kgo.Record) {
	s := &seen{
		place: place{r.Partition, r.Offset}, topic: r.Topic, at: r.Timestamp,
		id: headerOf(r, idHeader), digest: testkit.Digest(r),
	}
	if verdict := headerOf(r, forwarder.HeaderVerdict); verdict != "" {
		s.source.Partition = int32(number(headerOf(r, forwarder.HeaderSourcePartition)))
		s.source.Offset = number(headerOf(r, forwarder.HeaderSourceOffset))
		s.note = fmt.Sprintf("says: %v is a %s of [%s]@%s, claimed %s", s.source, verdict,
			headerOf(r, forwarder.HeaderOwnerPartition), headerOf(r, forwarder.HeaderOwnerOffset),
			headerOf(r, forwarder.HeaderClaimedAt))
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

// claimOf says what the store knows about an ID.
func (s *storm) claimOf(id string) string {
	cmd := exec.CommandContext(s.t.Context(), kdedup, "id", "lookup", id, "-c",
		filepath.Join(s.dir, "kdedup-0.yaml"), "--instance", "check")
	cmd.Env = testkit.Environment()
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Sprintf("%v: %s", err, out)
	}
	return string(out)
}
