package backfill

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/connect/logreader"
	"github.com/kdedup/kdedup/dedup"
)

// Judge claims the IDs of a batch; dedup.Deduper has the contract.
type Judge interface {
	Judge(ctx context.Context, messages []dedup.Message) ([]dedup.Judgement, error)
}

// Options say what is read and who claims.
type Options struct {
	Connection   []kgo.Opt     // brokers, TLS, SASL, logging
	Clean        logreader.Log // of the clean topic
	Judge        Judge
	BatchRecords int                     // claimed at a time
	Progress     func(done, total int64) // offsets; may be nil
}

// Counts are records of the clean topic; each is counted once, in Records and in one of the others.
type Counts struct {
	Records int64
	Claimed int64 // by this run
	Earlier int64 // by an earlier run, for the same record
	Copies  int64 // of an ID that another record of the clean topic owns
	Taken   int64 // of an ID that a record of an input owns, or that was claimed by hand
	Missing int64 // without an ID
	Exempt  int64 // no ID is looked for in them
}

// errNoTopicIDs refuses brokers on which the places of input and clean topic cannot be told apart.
var errNoTopicIDs = errors.New(
	"the brokers have no topic IDs, so that records of the clean topic and of the input " +
		"could be taken for each other; backfill needs Kafka 2.8 or later")

// Run claims the IDs of all records of the clean topic. The counts are those up to an error; the
// claims that were made stand, and running again goes on.
func Run(ctx context.Context, o Options) (Counts, error) {
	if o.Clean.TopicID == ([16]byte{}) {
		return Counts{}, fmt.Errorf("backfill from %s: %w", o.Clean.Topic, errNoTopicIDs)
	}
	if o.Progress == nil {
		o.Progress = func(int64, int64) {}
	}
	r := &run{options: o, total: o.Clean.Offsets(), began: time.Now().Truncate(time.Millisecond)}
	err := logreader.Read(ctx, o.Connection, o.Clean, func(records []*kgo.Record) error {
		return r.add(ctx, records)
	})
	if err == nil {
		err = r.claim(ctx)
	}
	if err != nil {
		return r.counts, fmt.Errorf("backfill from %s: %w", o.Clean.Topic, err)
	}
	return r.counts, nil
}

type run struct {
	options Options
	total   int64
	began   time.Time
	batch   []dedup.Message
	counts  Counts
}

func (r *run) add(ctx context.Context, records []*kgo.Record) error {
	for _, record := range records {
		r.batch = append(r.batch, dedup.Message{Record: record,
			Owner: dedup.CoordinatesOf(r.options.Clean.TopicID, record)})
		if len(r.batch) < r.options.BatchRecords {
			continue
		}
		if err := r.claim(ctx); err != nil {
			return err
		}
	}
	return nil
}

// claim returns when all IDs of the batch are decided.
func (r *run) claim(ctx context.Context) error {
	if len(r.batch) == 0 {
		return nil
	}
	judgements, err := r.options.Judge.Judge(ctx, r.batch)
	if err != nil {
		return err
	}
	for i := range judgements {
		r.count(&judgements[i])
	}
	r.counts.Records += int64(len(r.batch))
	r.batch = r.batch[:0]
	r.options.Progress(r.counts.Records, r.total)
	return nil
}

func (r *run) count(j *dedup.Judgement) {
	switch {
	case j.Verdict == dedup.VerdictMissing:
		r.counts.Missing++
	case j.Verdict == dedup.VerdictExempt, j.Verdict == dedup.VerdictTombstone:
		r.counts.Exempt++
	case j.Verdict == dedup.VerdictFirst, j.Own() && !j.ClaimedAt.Before(r.began):
		// the latter's answer was lost at first
		r.counts.Claimed++
	case j.Own():
		r.counts.Earlier++
	case j.Owner.TopicID == r.options.Clean.TopicID:
		r.counts.Copies++
	default:
		r.counts.Taken++
	}
}
