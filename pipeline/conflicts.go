package pipeline

import (
	"context"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/consumer"
	"github.com/kdedup/kdedup/dedup"
)

// ConflictPair is a copy with other content than the record that owns its ID.
type ConflictPair struct {
	Copy        *kgo.Record
	Owner       dedup.Coordinates
	OwnerRecord *kgo.Record // nil: it is not in the batch
	Differs     string      // in what, for people; empty: not known
}

// CompareConflicts fills in Differs. It reads owners' records, where it can before ctx ends, and
// leaves out the others: the answer helps people, and decides nothing.
type CompareConflicts func(ctx context.Context, conflicts []*ConflictPair)

const (
	// compareTime bounds what a batch waits for it.
	compareTime = 250 * time.Millisecond
	// mostCompared bounds the conflicts of a batch that are compared.
	mostCompared = 100
	// comparePause keeps it to a tenth of the lane's time, whatever the share of conflicts is.
	comparePause = 9
)

// comparing is what a lane remembers of it.
type comparing struct {
	compare CompareConflicts // nil: nobody compares
	next    time.Time
}

// differences tells in what conflicts differ from their owners, by their index in the batch.
func (c *comparing) differences(
	work context.Context, b *consumer.Batch, judgements []dedup.Judgement,
) map[int]string {
	now := time.Now()
	if c.compare == nil || now.Before(c.next) {
		return nil
	}
	var (
		conflicts []*ConflictPair
		at        []int
	)
	for i := range judgements {
		if j := &judgements[i]; j.Verdict == dedup.VerdictConflict && len(at) < mostCompared {
			conflicts = append(conflicts, &ConflictPair{Copy: b.Records[i].Record, Owner: j.Owner})
			at = append(at, i)
		}
	}
	if len(at) == 0 {
		return nil
	}
	findOwners(b, conflicts)
	ctx, cancel := b.Context(work)
	defer cancel()
	ctx, stop := context.WithTimeout(ctx, compareTime)
	defer stop()
	c.compare(ctx, conflicts)
	c.next = time.Now().Add(comparePause * time.Since(now))
	differ := make(map[int]string, len(at))
	for n, i := range at {
		if conflicts[n].Differs != "" {
			differ[i] = conflicts[n].Differs
		}
	}
	return differ
}

// findOwners fills in those that the batch has.
func findOwners(b *consumer.Batch, conflicts []*ConflictPair) {
	owners := make(map[dedup.Coordinates]*kgo.Record, len(conflicts))
	for _, one := range conflicts {
		owners[one.Owner] = nil
	}
	for _, r := range b.Records {
		at := dedup.CoordinatesOf(r.TopicID, r.Record)
		if _, wanted := owners[at]; wanted {
			owners[at] = r.Record
		}
	}
	for _, one := range conflicts {
		one.OwnerRecord = owners[one.Owner]
	}
}
