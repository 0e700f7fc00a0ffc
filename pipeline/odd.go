package pipeline

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/consumer"
	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/forwarder"
)

// odd records are those of which somebody should know: their policy takes them elsewhere, and all
// else looks well.
type oddKind uint8

const (
	oddMissing oddKind = iota
	oddConflict
	oddRefused
	oddKinds
)

var oddTexts = [oddKinds]string{
	"records have no message ID",
	"records have a known message ID with other content: another key or value than its owner's",
	"the clean topic does not take some records: they were treated as on_undeliverable says",
}

// oddity is what a batch, or a minute, has of one kind.
type oddity struct {
	records       int
	place, reason string // of the last one
	became        Outcome
}

// odds are those of a batch.
type odds [oddKinds]oddity

func (o *odds) note(r consumer.Record, j noted, became Outcome) {
	var (
		kind   oddKind
		reason string
	)
	switch {
	case j.Verdict == dedup.VerdictMissing:
		kind, reason = oddMissing, j.Missing.String()
	case j.Verdict == dedup.VerdictConflict:
		kind, reason = oddConflict, fmt.Sprintf("the ID is owned by partition %d, offset %d",
			j.Owner.Partition, j.Owner.Offset)
		if j.differs == "" {
			j.differs = "not known, kdedup report names the fields"
		}
		reason += "; what differs: " + j.differs
	default:
		return
	}
	o.add(kind, r.Record, reason, became)
}

// refuse notes a record that the clean topic does not take.
func (o *odds) refuse(refusal forwarder.Refusal, became Outcome) {
	reason := refusal.Reason
	if refusal.Err != nil {
		reason += ": " + refusal.Err.Error()
	}
	o.add(oddRefused, refusal.Record, reason, became)
}

func (o *odds) add(kind oddKind, r *kgo.Record, reason string, became Outcome) {
	o[kind] = oddity{o[kind].records + 1, fmt.Sprintf("%s[%d]@%d", r.Topic, r.Partition, r.Offset),
		reason, became}
}

// oddEvery is the pause between two lines about one kind.
const oddEvery = time.Minute

// oddLog tells of the odd records of a lane: at once of the first, and then once a minute.
type oddLog struct {
	waiting odds
	told    [oddKinds]time.Time
}

func (l *oddLog) add(o *odds, log *slog.Logger, now time.Time) {
	for kind := range o {
		if o[kind].records == 0 {
			continue
		}
		last := o[kind]
		last.records += l.waiting[kind].records
		l.waiting[kind] = last
		if now.Sub(l.told[kind]) < oddEvery {
			continue
		}
		log.Warn(oddTexts[kind], "records", last.records, "last", last.place, "reason", last.reason,
			"became", last.became.String())
		l.waiting[kind], l.told[kind] = oddity{}, now
	}
}
