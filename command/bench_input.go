package command

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/command/idorder"
	"github.com/kdedup/kdedup/config"
	"github.com/kdedup/kdedup/connect"
	"github.com/kdedup/kdedup/dedup"
)

// inputFound is what the user's own topic tells about itself.
type inputFound struct {
	rate    float64 // records a second over the last 24 hours; 0 if none came
	idBytes int     // mean length; 0 if unknown
	order   string  // of the IDs
}

const (
	inputWindow = 24 * time.Hour
	inputWait   = 10 * time.Second // for the sample
	inputSample = 2000             // records, of all partitions together
	leastSample = 100              // fewer tell nothing about the order
)

// inspectInput joins no group and commits nothing.
func inspectInput(
	ctx context.Context, c config.Config, t config.Topic, log *slog.Logger,
) (found inputFound, err error) {
	found.order = orderUnknown
	servers := connect.NewServers(c, log)
	defer func() { err = errors.Join(err, servers.Close()) }()
	clusters, err := servers.Clusters(ctx)
	if err != nil {
		return found, err
	}
	connection, err := servers.InputOptions(ctx, "bench")
	if err != nil {
		return found, err
	}
	admin := kadm.NewClient(clusters.Input)
	ends, err := admin.ListCommittedOffsets(ctx, t.Input)
	if err = errors.Join(err, ends.Error()); err != nil {
		return found, fmt.Errorf("read the ends of %s: %w", t.Input, err)
	}
	begins, err := admin.ListOffsetsAfterMilli(ctx, time.Now().Add(-inputWindow).UnixMilli(),
		t.Input)
	if err = errors.Join(err, begins.Error()); err != nil {
		return found, fmt.Errorf("read the offsets of %s: %w", t.Input, err)
	}
	found.rate = rateOf(t.Input, begins, ends, time.Now())
	e, err := servers.Entry(t)
	if err != nil {
		return found, err
	}
	sample, err := sampleIDs(ctx, connection, t, e.Extractor, begins, ends)
	if err != nil {
		return found, err
	}
	found.idBytes, found.order = meanBytes(sample), orderOf(sample)
	return found, nil
}

// rateOf counts from the first record in the window, so that a young topic is not taken for a slow
// one.
func rateOf(topic string, begins, ends kadm.ListedOffsets, now time.Time) float64 {
	records, first := int64(0), now
	ends.Each(func(end kadm.ListedOffset) {
		begin, ok := begins.Lookup(topic, end.Partition)
		if !ok || begin.Offset < 0 || begin.Offset >= end.Offset {
			return
		}
		records += end.Offset - begin.Offset
		if at := time.UnixMilli(begin.Timestamp); begin.Timestamp > 0 && at.Before(first) {
			first = at
		}
	})
	return float64(records) / max(1, now.Sub(first).Seconds())
}

// sampleIDs spreads the sample over the window, as far as its records are still there.
func sampleIDs(
	ctx context.Context, connection []kgo.Opt, t config.Topic, extractor dedup.Extractor,
	begins, ends kadm.ListedOffsets,
) ([]idorder.Sampled, error) {
	const pieces = 10
	var sample []idorder.Sampled
	limited, cancel := context.WithTimeout(ctx, inputWait)
	defer cancel()
	for piece := range int64(pieces) {
		starts, each := pieceOf(t.Input, begins, ends, piece, pieces)
		if each == 0 {
			continue
		}
		err := readPiece(limited, connection, starts, each, func(r *kgo.Record) {
			// without its schema a record tells nothing of the order
			id, missing, err := dedup.ExtractNow(limited, extractor, r)
			if missing == dedup.NotMissing && err == nil {
				sample = append(sample,
					idorder.Sampled{ID: string(id), At: r.Timestamp.UnixMilli()})
			}
		})
		if err != nil && limited.Err() == nil {
			return nil, fmt.Errorf("read %s: %w", t.Input, err)
		}
	}
	return sample, context.Cause(ctx)
}

// pieceOf returns where one piece of the window begins in each partition, and how many records it
// has in all of them together.
func pieceOf(
	topic string, begins, ends kadm.ListedOffsets, piece, pieces int64,
) (starts map[string]map[int32]kgo.Offset, records int) {
	starts = map[string]map[int32]kgo.Offset{topic: {}}
	ends.Each(func(end kadm.ListedOffset) {
		begin, ok := begins.Lookup(topic, end.Partition)
		if !ok || begin.Offset < 0 || begin.Offset >= end.Offset {
			return
		}
		length := end.Offset - begin.Offset
		at := begin.Offset + length*piece/pieces
		starts[topic][end.Partition] = kgo.NewOffset().At(at)
		records += int(min(end.Offset-at, length/pieces+1))
	})
	return starts, min(records, inputSample/int(pieces))
}

// readPiece reads a number of records, or as many as come before ctx ends: of markers and aborted
// transactions none come.
func readPiece(
	ctx context.Context, connection []kgo.Opt, starts map[string]map[int32]kgo.Offset, records int,
	each func(*kgo.Record),
) error {
	client, err := kgo.NewClient(append(connection[:len(connection):len(connection)],
		kgo.ConsumePartitions(starts), kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.FetchMaxBytes(1<<20))...)
	if err != nil {
		return err
	}
	defer client.Close()
	for records > 0 {
		fetches := client.PollRecords(ctx, records)
		if err := fetches.Err(); err != nil {
			return err
		}
		fetches.EachRecord(each)
		records -= fetches.NumRecords()
	}
	return nil
}

func meanBytes(sample []idorder.Sampled) int {
	if len(sample) == 0 {
		return 0
	}
	total := 0
	for _, s := range sample {
		total += len(s.ID)
	}
	return total / len(sample)
}

// orderOf says too little is known where too few pairs differ.
func orderOf(sample []idorder.Sampled) string {
	const nearlyAll = 0.95
	if len(sample) < leastSample {
		return orderUnknown
	}
	same, pairs := idorder.Compare(sample)
	switch {
	case pairs < leastSample:
		return orderUnknown
	case float64(same) >= nearlyAll*float64(pairs):
		return orderTime
	}
	return orderRandom
}
