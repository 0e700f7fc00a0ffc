package process

import (
	"context"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/connect"
	"github.com/kdedup/kdedup/connect/logreader"
	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/dedup/messageid"
	"github.com/kdedup/kdedup/pipeline"
)

// compareConflicts reads the owners of conflicts from the input, and names what differs. The lanes
// of an entry take turns: a lane that does not get its turn in time goes on without an answer.
func (p *running) compareConflicts(e connect.Entry) pipeline.CompareConflicts {
	reader, err := messageid.NewReader(e.ContentFormat(), e.Schemas)
	if err != nil {
		p.log.Warn("what conflicts differ in is not told", "topic", e.Input, "error", err)
		return nil
	}
	turn := make(chan struct{}, 1)
	return func(ctx context.Context, conflicts []*pipeline.ConflictPair) {
		select {
		case turn <- struct{}{}:
			defer func() { <-turn }()
		case <-ctx.Done():
			return
		}
		p.readOwners(ctx, e.Input, conflicts)
		for _, c := range conflicts {
			if c.OwnerRecord == nil {
				continue
			}
			// without the registry it stays unknown
			c.Differs, _ = reader.Differ(ctx, c.OwnerRecord, c.Copy)
		}
	}
}

// readOwners finds those that the batch does not have. The topics that share a scope are on the
// same cluster.
func (p *running) readOwners(
	ctx context.Context, input string, conflicts []*pipeline.ConflictPair,
) {
	var places []logreader.Place
	for _, c := range conflicts {
		if c.OwnerRecord == nil {
			places = append(places, placeOf(c.Owner))
		}
	}
	if len(places) == 0 {
		return
	}
	found, err := logreader.At(ctx, p.clusters.Input, input, places)
	if err != nil && ctx.Err() == nil {
		p.log.Debug("the owners of conflicts could not be read", "topic", input, "error", err)
	}
	for _, c := range conflicts {
		if c.OwnerRecord == nil {
			c.OwnerRecord = ownedBy(found[placeOf(c.Owner)], c.Owner)
		}
	}
}

func placeOf(owner dedup.Coordinates) logreader.Place {
	return logreader.Place{TopicID: owner.TopicID, Partition: owner.Partition, Offset: owner.Offset}
}

// ownedBy leaves out a record that took the owner's place, after an unclean election.
func ownedBy(r *kgo.Record, owner dedup.Coordinates) *kgo.Record {
	if r == nil || r.LeaderEpoch != owner.LeaderEpoch {
		return nil
	}
	return r
}
