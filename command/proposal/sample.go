package proposal

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/connect/logreader"
)

// Limits bound what is read.
type Limits struct {
	Records int64         // the newest ones, of all partitions together
	Bytes   int64         // of keys, values and headers, about
	Time    time.Duration // until what was read by then must do
}

// DefaultLimits are enough to see copies where one in a hundred records is one.
var DefaultLimits = Limits{Records: 10_000, Bytes: 64 << 20, Time: 30 * time.Second}

// Sample is the newest records of a topic.
type Sample struct {
	Topic      string
	Partitions int
	Records    []*kgo.Record // a part of one partition at a time, in its order
	Whole      bool          // all that the topic holds
	Cut        string        // why they are fewer than were asked for, or empty
	// Finds reports whether a preset finds an ID in a record, or knows it for one that has none on
	// purpose, for Kind. Nil: it is not asked.
	Finds func(preset string, r *kgo.Record) bool
	// Schemas are those of the values, if they were asked for.
	Schemas *Schemas

	log logreader.Log
}

// probed records tell how large the others are.
const probed = 100

// errEnough ends the reading. It is no failure.
var errEnough = errors.New("enough was read")

// Read reads the newest records. It joins no group and commits nothing.
func Read(
	ctx context.Context, client *kgo.Client, connection []kgo.Opt, topic string, l Limits,
) (s Sample, err error) {
	if l.Records > probed {
		probe, err := read(ctx, client, connection, topic,
			Limits{Records: probed, Bytes: l.Bytes, Time: l.Time})
		if err != nil || len(probe.Records) == 0 && probe.Whole {
			return probe, err
		}
		// The newest of every partition, and not all of those that happen to come first.
		if fitting := probe.fitting(l.Bytes); fitting < l.Records {
			l.Records = max(fitting, 1)
			s.Cut = "records are large"
		}
	}
	cut := s.Cut
	if s, err = read(ctx, client, connection, topic, l); s.Cut == "" {
		s.Cut = cut
	}
	return s, err
}

func read(
	ctx context.Context, client *kgo.Client, connection []kgo.Opt, topic string, l Limits,
) (Sample, error) {
	s := Sample{Topic: topic}
	describing, cancel := context.WithTimeout(ctx, l.Time)
	defer cancel()
	var err error
	if s.log, err = logreader.Describe(describing, client, topic, logreader.Bounds{}); err != nil {
		return s, err
	}
	all := s.log.Offsets()
	s.log = s.log.Newest(l.Records)
	s.Whole, s.Partitions = s.log.Offsets() == all, len(s.log.Partitions)
	reading, cancel := context.WithTimeoutCause(ctx, l.Time, errEnough)
	defer cancel()
	var size int64
	err = logreader.Read(reading, connection, s.log, func(records []*kgo.Record) error {
		for _, r := range records {
			if size += sizeOf(r); size > l.Bytes && len(s.Records) > 0 {
				s.Cut = "records are large"
				return errEnough
			}
			s.Records = append(s.Records, r)
		}
		return nil
	})
	if errors.Is(err, errEnough) {
		if s.Whole = false; s.Cut == "" {
			s.Cut = fmt.Sprintf("no more came within %s", l.Time)
		}
		err = nil
	}
	return s, err
}

func (s Sample) fitting(bytes int64) int64 {
	var size int64
	for _, r := range s.Records {
		size += sizeOf(r)
	}
	if size == 0 {
		return bytes
	}
	return int64(float64(bytes) / float64(size) * float64(len(s.Records)))
}

func sizeOf(r *kgo.Record) int64 {
	size := len(r.Key) + len(r.Value)
	for _, h := range r.Headers {
		size += len(h.Key) + len(h.Value)
	}
	return int64(size)
}
