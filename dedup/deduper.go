package dedup

import (
	"context"
	"hash/maphash"
	"log/slog"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Message is one record as the deduper sees it. Messages makes them from a poll.
type Message struct {
	Record *kgo.Record
	Owner  Coordinates // of the record
	// Settled is for consumers that remember what they committed, as kdedup does in its fence: an
	// own claim that was made up to then was forwarded, and that was committed. Left zero, no own
	// claim is settled, and there is no VerdictReplay.
	Settled time.Time
}

// Claimer is the part of a Store that judging needs; Store.Claim has the contract.
type Claimer interface {
	Claim(ctx context.Context, scope Scope, claims []Claim) ([]Answer, error)
}

// Deduper judges the batches of one lane, one batch at a time. It is not safe for concurrent use.
type Deduper struct {
	scope     Scope
	extractor Extractor
	store     Claimer
	retry     Retry
	observer  Observer
	log       *slog.Logger

	fingerprints Fingerprinter
	folded       folded
	outage       waiting // for the store
	unresolved   waiting // for the server that the extractor asks
}

// Options of a Deduper.
type Options struct {
	Extractor Extractor    // finds the message IDs; package messageid has one
	Retry     Retry        // zero: DefaultRetry
	Observer  Observer     // nil: nobody hears what claims take
	Logger    *slog.Logger // nil: nothing is logged
	// Outages is shared by dedupers whose waiting is to be one line of the log, which names this
	// one by Topic and Lane. Nil: it has its own.
	Outages *Outages
	Topic   string
	Lane    int
}

// New returns the deduper of one lane. The scope is registered with the store beforehand, with the
// extractor's String as its Extractor.
func New(scope Scope, store Claimer, o Options) *Deduper {
	if o.Retry == (Retry{}) {
		o.Retry = DefaultRetry
	}
	if o.Observer == nil {
		o.Observer = unobserved{}
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Outages == nil {
		o.Outages = newOutages(o.Logger, false)
	}
	return &Deduper{
		scope: scope, store: store, extractor: o.Extractor, retry: o.Retry, observer: o.Observer,
		log: o.Logger, fingerprints: o.Extractor.Fingerprinter(),
		folded: folded{seen: claimTable{seed: maphash.MakeSeed()}},
		outage: waiting{
			reporter: o.Outages.store.Reporter(o.Topic, o.Lane, nil), open: "claims"},
		unresolved: waiting{
			reporter: o.Outages.resolver.Reporter(o.Topic, o.Lane, nil), open: "records"},
	}
}

// Judge claims the IDs of a batch and returns one judgement per message, in order. While the store
// does not answer it keeps claiming, see Retry, and so it keeps asking an extractor that is a
// Resolver. The error is ctx's: then nothing is known about the batch, its claims may stand, and
// judging its records again is safe.
//
// Messages may have equal IDs. IDs share memory with their records, so the records must not be
// changed while Judge runs; afterwards nothing is kept.
func (d *Deduper) Judge(ctx context.Context, messages []Message) ([]Judgement, error) {
	batch, err := d.fold(messages)
	defer batch.letGo()
	if err != nil {
		return nil, err
	}
	if batch.unresolved > 0 {
		if err := d.resolve(ctx, messages); err != nil {
			return nil, err
		}
	}
	for notice := d.extractor.Notice(); notice != ""; notice = d.extractor.Notice() {
		d.log.Info(notice, "message_id", d.extractor.String())
	}
	start := time.Now()
	answers, err := d.insist(ctx, batch.claims)
	if err != nil {
		return nil, err
	}
	if len(batch.claims) > 0 {
		d.observer.Judged(answers, time.Since(start))
	}
	return batch.judge(messages, answers), nil
}
