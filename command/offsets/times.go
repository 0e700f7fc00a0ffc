package offsets

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/connect/logreader"
)

// sample is how many offsets are looked at to learn whether records keep their times.
const sample = 64

// times tell how old the records of a partition of the input are from a limit on. kdedup forwards a
// record with its timestamp. So a record of the clean topic with an earlier one comes from below
// the limit, whoever owns its ID, wherever it stands, and whether a dead letter was it or not.
type times struct {
	known  bool
	oldest int64 // in milliseconds
}

func (t times) before(r *kgo.Record) bool {
	return t.known && timed(r) && r.Timestamp.UnixMilli() < t.oldest
}

// timed reports whether the time of a record on the clean topic is that of its source: the topic
// may have message.timestamp.type=LogAppendTime.
func timed(r *kgo.Record) bool {
	return r.Attrs.TimestampType() == 0 && r.Timestamp.UnixMilli() >= 0
}

// narrow moves the begin of the proofs on to the first record that has a time from the limit on.
func (o Options) narrow(ctx context.Context, proofs map[int32]*proof) error {
	found, err := o.timesFrom(ctx, proofs)
	if err != nil {
		return err
	}
	for p, t := range found {
		part := o.Clean.Partitions[p]
		if t.oldest == math.MaxInt64 { // nothing is there from the limit on
			proofs[p].from = part.End
			continue
		}
		from, err := firstFrom(ctx, o.cleanConnection(), o.Clean, p, time.UnixMilli(t.oldest))
		if err != nil {
			return err
		}
		from = min(max(from, part.Start), part.End)
		for _, r := range []logreader.Range{
			{Start: from, End: min(from+sample, part.End)},
			{Start: max(part.Start, part.End-sample), End: part.End},
		} {
			all, err := o.allTimed(ctx, p, r)
			if err != nil {
				return err
			}
			t.known = t.known && all
		}
		if t.known {
			proofs[p].times, proofs[p].from = t, from
		}
	}
	return nil
}

// timesFrom reads the input from the limits on. Where a record is gone nobody knows its time, and
// nothing is found.
func (o Options) timesFrom(
	ctx context.Context, proofs map[int32]*proof,
) (map[int32]times, error) {
	part := o.Input
	part.Partitions = make(map[int32]logreader.Range)
	found, next := make(map[int32]times), make(map[int32]int64)
	for p, proof := range proofs {
		if in, ok := o.Input.Partitions[p]; ok && proof.limit >= in.Start {
			part.Partitions[p] = logreader.Range{Start: proof.limit, End: in.End}
			found[p], next[p] = times{known: true, oldest: math.MaxInt64}, proof.limit
		}
	}
	err := logreader.ReadAll(ctx, o.Connection, part, func(records []*kgo.Record) error {
		for _, r := range records {
			t := found[r.Partition]
			t.known = t.known && r.Offset == next[r.Partition] && r.Timestamp.UnixMilli() >= 0
			t.oldest = min(t.oldest, r.Timestamp.UnixMilli())
			found[r.Partition], next[r.Partition] = t, r.Offset+1
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("look for the times: %w", err)
	}
	for p, t := range found {
		if !t.known || next[p] != part.Partitions[p].End {
			delete(found, p)
		}
	}
	return found, nil
}

// allTimed reports whether there are records in a part of the clean topic, and all keep their
// times; a part without offsets says nothing against it.
func (o Options) allTimed(ctx context.Context, p int32, r logreader.Range) (bool, error) {
	part := o.Clean
	part.Partitions = map[int32]logreader.Range{p: r}
	seen, all := false, true
	err := logreader.Read(ctx, o.cleanConnection(), part, func(records []*kgo.Record) error {
		seen = true
		for _, r := range records {
			all = all && timed(r)
		}
		return nil
	})
	if err != nil {
		return false, fmt.Errorf("look for the times: %w", err)
	}
	return all && (seen || r.Start == r.End), nil
}

// firstFrom is the first offset of a partition whose record has this time or a later one.
func firstFrom(
	ctx context.Context, connection []kgo.Opt, log logreader.Log, p int32, at time.Time,
) (int64, error) {
	client, err := kgo.NewClient(connection...)
	if err != nil {
		return 0, err
	}
	defer client.Close()
	found, err := kadm.NewClient(client).ListOffsetsAfterMilli(ctx, at.UnixMilli(), log.Topic)
	if err == nil {
		err = found.Error()
	}
	if err != nil {
		return 0, fmt.Errorf("list offsets of %s: %w", log.Topic, err)
	}
	offset, ok := found.Lookup(log.Topic, p)
	if !ok {
		return 0, fmt.Errorf("list offsets of %s: no answer for partition %d", log.Topic, p)
	}
	return offset.Offset, nil
}
