package client

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/fence"
)

// sight is what a start of a group finds.
type sight struct {
	begins, ends map[int32]kadm.ListedOffset // of the logs, the ends maybe from before
	committed    map[int32]kadm.OffsetResponse
	found        fence.Found
	here         place
}

func (g Group) lookAtStart(ctx context.Context, client *kgo.Client) (*sight, error) {
	admin := kadm.NewClient(client)
	have, err := stableOffsets(ctx, client, g.Name, g.Grouped())
	if err != nil && !errors.Is(err, kerr.GroupIDNotFound) {
		return nil, fmt.Errorf("fetch offsets: %w", err)
	}
	here, err := g.place(ctx, admin)
	if err != nil {
		return nil, err
	}
	begins, err := listed(g.logs(admin).ListStartOffsets(ctx, g.Input))
	if err != nil {
		return nil, fmt.Errorf("list the start of %s: %w", g.Input, err)
	}
	ends, err := listed(g.logs(admin).ListCommittedOffsets(ctx, g.Input))
	if err != nil {
		return nil, fmt.Errorf("list the end of %s: %w", g.Input, err)
	}
	s := &sight{begins: begins[g.Input], ends: ends[g.Input], committed: have,
		here: here}
	for p := range s.begins {
		// a transaction is still ending: its offset must not be overtaken
		if err := s.committed[p].Err; err != nil {
			return nil, fmt.Errorf("offset of partition %d: %w", p, err)
		}
	}
	return s, g.readStarts(ctx, client, s)
}

func listed(offsets kadm.ListedOffsets, err error) (kadm.ListedOffsets, error) {
	if err == nil {
		err = offsets.Error()
	}
	return offsets, err
}

// readStarts waits for open transactions only where that decides where a partition begins.
func (g Group) readStarts(ctx context.Context, client *kgo.Client, s *sight) (err error) {
	var open, settled []int32
	for _, p := range slices.Sorted(maps.Keys(s.begins)) {
		if s.open(p) {
			open = append(open, p)
		} else {
			settled = append(settled, p)
		}
	}
	if s.found, err = g.fences(ctx, client, settled, fence.AsCommitted); err != nil ||
		len(open) == 0 {
		return err
	}
	waited, err := g.fences(ctx, client, open, fence.Patience)
	if err != nil {
		return err
	}
	maps.Copy(s.found.Fences, waited.Fences)
	maps.Copy(s.found.Starts, waited.Starts)
	maps.Copy(s.found.Lacking, waited.Lacking)
	return nil
}

// open reports whether the group has no offset of a partition.
func (s *sight) open(partition int32) bool {
	at, known := s.committed[partition]
	return !known || at.At < 0
}

// began reports whether the scope has begun before. The start of partition 0 is written last: with
// it all are there. Marks of earlier versions were checked before.
func (s *sight) began() bool {
	_, decided := s.found.Begin(0)
	return decided || len(s.found.Fences) > 0 ||
		slices.ContainsFunc(slices.Collect(maps.Values(s.committed)),
			func(o kadm.OffsetResponse) bool {
				return o.At >= 0 && (s.here.vouches(o.Metadata) || o.Metadata == earlierMark)
			})
}

// decide returns the starts and the offsets that are to be written.
func (s *sight) decide(g Group, first bool) (starts map[int32]fence.Fence, offsets kadm.Offsets) {
	starts, offsets = make(map[int32]fence.Fence), make(kadm.Offsets)
	begin := func(p int32, at int64, epoch int32) {
		if s.found.Lacking[p] { // the next start writes it, when the fence topic was widened
			return
		}
		starts[p] = fence.StartAt(s.found.Input, at, epoch, g.Name)
	}
	for p := range s.begins {
		f, decided := s.found.Begin(p)
		switch {
		case decided && s.open(p) && f.Of(s.found.Input) && f.Next() > 0:
			offsets.Add(g.offsetAt(s.here, p, f.Next(), -1))
		case decided: // it goes on; or the topic was made again, and it begins at its beginning
		case !s.open(p): // pinned by a version before the starts, or adopted
			begin(p, s.committed[p].At, s.committed[p].LeaderEpoch)
		case !first: // it came later
		default:
			end, there := s.ends[p]
			if !there {
				end.LeaderEpoch = -1
			}
			begin(p, end.Offset, end.LeaderEpoch)
			offsets.Add(g.offsetAt(s.here, p, end.Offset, end.LeaderEpoch))
		}
	}
	return starts, offsets
}

func (g Group) offsetAt(here place, partition int32, at int64, epoch int32) kadm.Offset {
	return kadm.Offset{Topic: g.Grouped(), Partition: partition, At: at, LeaderEpoch: epoch,
		Metadata: here.mark()}
}

// writeStarts writes that of partition 0 behind the others: when it is there, all are.
func (g Group) writeStarts(
	ctx context.Context, client *kgo.Client, starts map[int32]fence.Fence,
) error {
	var records, last []*kgo.Record
	for p, start := range starts {
		r := fence.StartRecord(g.FenceTopic, g.Input, p, start)
		if p == 0 {
			last = append(last, r)
		} else {
			records = append(records, r)
		}
	}
	for _, some := range [][]*kgo.Record{records, last} {
		if err := client.ProduceSync(ctx, some...).FirstErr(); err != nil {
			return fmt.Errorf("write to %s: %w", g.FenceTopic, err)
		}
	}
	return nil
}

// agree takes over the lower start where another process decided as well: what came between the two
// is read. The lower one is written once more, behind the other one: it is what compaction keeps.
func (g Group) agree(
	ctx context.Context, client *kgo.Client, starts map[int32]fence.Fence, offsets kadm.Offsets,
) error {
	found, err := g.fences(ctx, client, slices.Sorted(maps.Keys(starts)), fence.Patience)
	if err != nil {
		return err
	}
	lower := make(map[int32]fence.Fence)
	for p, start := range starts {
		other, some := found.Starts[p]
		if !some || other.Next() >= start.Next() {
			continue
		}
		lower[p], starts[p] = other, other
		if _, commits := offsets.Lookup(g.Grouped(), p); commits {
			// Add would keep the higher one
			at := offsets[g.Grouped()][p]
			at.At, at.LeaderEpoch = other.Next(), other.LeaderEpoch
			offsets[g.Grouped()][p] = at
		}
	}
	return g.writeStarts(ctx, client, lower)
}
