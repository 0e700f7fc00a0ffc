package redrive

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/connect/logreader"
	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/forwarder"
	"github.com/kdedup/kdedup/internal/crashpoint"
)

// errNoTopicIDs refuses brokers on which the places of letters and of the input cannot be told
// apart.
var errNoTopicIDs = errors.New("the brokers have no topic IDs, so that a letter and a record of " +
	"the input could be taken for each other; redrive needs Kafka 2.8 or later")

// errEnough ends the reading at the limit.
var errEnough = errors.New("enough letters are redriven")

// Run redrives the letters that are selected. The report is up to an error: what it counts as
// redriven stands, and running again goes on.
func Run(ctx context.Context, o Options) (*Report, error) {
	r := newRun(&o)
	r.report = newReport(&o)
	err := r.all(ctx)
	if errors.Is(err, errEnough) {
		err = nil
	}
	return r.report.finished(), err
}

func (r *run) all(ctx context.Context) error {
	if r.Letters.TopicID == ([16]byte{}) {
		return errNoTopicIDs
	}
	if err := r.begin(ctx); err != nil {
		return err
	}
	if r.session != nil {
		defer r.session.close()
	}
	err := logreader.Read(ctx, r.Connection(), r.Letters, func(records []*kgo.Record) error {
		return r.add(ctx, records)
	})
	if err == nil {
		err = r.flush(ctx)
	}
	return err
}

type run struct {
	*Options
	judges       *dedup.Deduper
	fingerprints dedup.Fingerprinter
	session      *session // nil in a dry run
	marks        *marks
	sent         map[dedup.ID]dedup.Fingerprint // in this run, without a claim
	batch        []*letter
	bytes        int
	done         int64 // offsets
	report       *Report
}

func newRun(o *Options) *run {
	if o.Progress == nil {
		o.Progress = func(int64, int64) {}
	}
	return &run{Options: o, fingerprints: o.Extractor.Fingerprinter(),
		sent: make(map[dedup.ID]dedup.Fingerprint),
		judges: dedup.New(o.Scope, o.claimer(), dedup.Options{Extractor: o.Extractor,
			Logger: o.Logger})}
}

func (r *run) begin(ctx context.Context) (err error) {
	if r.DryRun {
		r.marks, err = readMarks(ctx, r.Options, false)
		return err
	}
	if r.session, err = begin(ctx, r.Options); err != nil {
		return err
	}
	r.marks = r.session.marks
	return nil
}

func (r *run) add(ctx context.Context, records []*kgo.Record) error {
	for _, record := range records {
		if r.Limit > 0 && r.report.Redriven >= r.Limit {
			return errEnough
		}
		if err := r.sieve(ctx, record); err != nil {
			return err
		}
		if r.full() {
			if err := r.flush(ctx); err != nil {
				return err
			}
		}
	}
	r.Progress(r.done, r.Letters.Offsets())
	return nil
}

func (r *run) full() bool {
	most := int64(r.BatchRecords)
	if r.Limit > 0 {
		most = min(most, r.Limit-r.report.Redriven)
	}
	return int64(len(r.batch)) >= most || r.bytes >= r.BatchBytes
}

// sieve keeps a letter that is selected and may be sent, and counts any other one.
func (r *run) sieve(ctx context.Context, record *kgo.Record) error {
	r.done++
	r.report.Read++
	l, err := r.open(record)
	switch {
	case err != nil:
		r.report.refuse(NotALetter, placeOf(record.Topic, record.Partition, record.Offset))
		return nil
	case l.Record.Topic != r.Input:
		r.report.OtherPipelines++
		return nil
	}
	if err := r.identify(ctx, l); err != nil {
		return err
	}
	switch {
	case !r.Select.matches(l):
		r.report.NotSelected++
		return nil
	case r.marks.has(l.mark):
		r.report.Earlier++
		return nil
	}
	if refusal := r.prepare(l, time.Now()); refusal != "" {
		r.report.refuse(refusal, l.String())
		return nil
	}
	r.batch = append(r.batch, l)
	r.bytes += len(record.Key) + len(record.Value)
	return nil
}

// flush redrives the batch.
func (r *run) flush(ctx context.Context) error {
	batch := r.distinct()
	r.batch, r.bytes = nil, 0
	if len(batch) == 0 {
		return nil
	}
	send, err := r.judge(ctx, batch)
	if err != nil {
		return err
	}
	crashpoint.At("letters-claimed")
	for len(send) > 0 {
		if send, err = r.send(ctx, send); err != nil {
			return err
		}
	}
	return nil
}

// send redrives letters, and returns those that are to be sent again: there was no time to find all
// that the topic refuses.
func (r *run) send(ctx context.Context, letters []*letter) (again []*letter, err error) {
	at := time.Now().Truncate(time.Millisecond)
	var refused map[*letter]string
	if !r.DryRun {
		refused, err = r.session.send(ctx, letters, at)
	}
	unfinished := errors.Is(err, forwarder.ErrUnfinished)
	if err != nil && !unfinished {
		return nil, fmt.Errorf("redrive into %s: %w", r.Target.Output, err)
	}
	crashpoint.At("letters-committed")
	for _, l := range letters {
		reason, is := refused[l]
		switch {
		case is:
			r.report.refuse(reason, l.String())
		case unfinished:
			again = append(again, l)
		default:
			r.marks.add(l, at)
			r.remember(l)
			r.report.redrove(l)
		}
	}
	return again, nil
}

// distinct is the batch without letters of one record that the pipeline wrote twice.
func (r *run) distinct() (letters []*letter) {
	seen := make(map[mark]bool, len(r.batch))
	for _, l := range r.batch {
		if seen[l.mark] {
			r.report.Earlier++
			continue
		}
		seen[l.mark] = true
		letters = append(letters, l)
	}
	return letters
}

// Found is what a selection finds.
type Found struct {
	Letters int64 // some may have been redriven already
	IDs     map[dedup.ID]bool
}

// Scan finds what is selected, and asks and changes nothing.
func Scan(ctx context.Context, o Options) (Found, error) {
	found := Found{IDs: make(map[dedup.ID]bool)}
	r := newRun(&o)
	err := logreader.Read(ctx, o.Connection(), o.Letters, func(records []*kgo.Record) error {
		for _, record := range records {
			r.done++
			l, err := r.open(record)
			if err != nil || l.Record.Topic != o.Input {
				continue
			}
			if err := r.identify(ctx, l); err != nil {
				return err
			}
			if !o.Select.matches(l) {
				continue
			}
			found.Letters++
			if l.missing == dedup.NotMissing {
				found.IDs[dedup.ID(strings.Clone(string(l.id)))] = true
			}
		}
		o.Progress(r.done, o.Letters.Offsets())
		return nil
	})
	return found, err
}
