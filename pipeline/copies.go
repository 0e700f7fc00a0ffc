package pipeline

import (
	"slices"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/consumer"
	"github.com/kdedup/kdedup/dedup"
)

// DroppedCopy is a copy that was not forwarded, but dropped, or kept as a dead letter if it is a
// conflict: whoever misses a message looks here first.
type DroppedCopy struct {
	At        time.Time // when its batch was committed
	ID        dedup.ID  // empty if nobody extracts it, see Options.Extract
	Partition int32
	Offset    int64
	Became    Outcome // Duplicate or Conflict: dropped, or on the duplicates topic; or DeadLettered
	Conflict  bool    // its content is not that of the record that owns the ID
	Differs   string  // in what; empty: not known
	Owner     dedup.Coordinates
	Elsewhere bool      // the owner stands on another topic, which shares the scope
	ClaimedAt time.Time // by the owner
}

// copiesKept is how many of them are kept for each pipeline.
const copiesKept = 20

// droppedCopies are the last copies that the lanes of a pipeline have dropped.
type droppedCopies struct {
	extract func(*kgo.Record) (dedup.ID, dedup.MissingReason) // may be nil

	mu  sync.Mutex
	all []DroppedCopy // the latest one first
}

// add takes the last copies of a committed batch. A batch without copies costs nothing, and one
// full of them as much as one with a few.
func (d *droppedCopies) add(b *consumer.Batch, p *plan, now time.Time) {
	left := min(copiesKept, p.outcomes[Duplicate]+p.outcomes[Conflict]+
		min(p.outcomes[DeadLettered], p.verdicts[dedup.VerdictConflict]))
	if left == 0 {
		return
	}
	var latest []DroppedCopy
	for i := len(b.Records) - 1; left > 0 && i >= 0; i-- {
		if o := p.became[i]; o == Duplicate || o == Conflict ||
			o == DeadLettered && p.judgements[i].Verdict == dedup.VerdictConflict {
			j := noted{&p.judgements[i], p.differs[i]}
			one := d.copyOf(b.Records[i], j, now)
			one.Became = o
			latest = append(latest, one)
			left--
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.all = append(latest, d.all...)
	d.all = d.all[:min(len(d.all), copiesKept)]
}

func (d *droppedCopies) copyOf(r consumer.Record, j noted, now time.Time) DroppedCopy {
	one := DroppedCopy{
		At: now, Partition: r.Partition, Offset: r.Offset,
		Conflict: j.Verdict == dedup.VerdictConflict, Differs: j.differs,
		Owner: j.Owner, ClaimedAt: j.ClaimedAt,
	}
	of, own := j.Owner.TopicID, r.TopicID
	one.Elsewhere = of != own && of != [16]byte{} && own != [16]byte{}
	if d.extract != nil {
		id, _ := d.extract(r.Record)
		one.ID = dedup.ID(append([]byte(nil), id...)) // it shares memory with the fetched batch
	}
	return one
}

// DroppedCopies lists the last copies that were dropped, the latest one first. It may be called at
// any time by any goroutine.
func (p *Pipeline) DroppedCopies() []DroppedCopy {
	p.dropped.mu.Lock()
	defer p.dropped.mu.Unlock()
	return slices.Clone(p.dropped.all)
}
