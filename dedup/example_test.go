package dedup_test

import (
	"context"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/dedup/memory"
	"github.com/kdedup/kdedup/dedup/messageid"
)

// order is a record as a producer makes it.
func order(partition int32, offset int64, id, value string) *kgo.Record {
	return &kgo.Record{
		Partition: partition, Offset: offset, Value: []byte(value),
		Headers: []kgo.RecordHeader{{Key: "message-id", Value: []byte(id)}},
	}
}

// poll stands for Client.PollRecords. What it returned and was not committed, it returns again.
func poll() kgo.Fetches {
	return kgo.Fetches{{Topics: []kgo.FetchTopic{{Topic: "orders", Partitions: []kgo.FetchPartition{
		{Partition: 0, Records: []*kgo.Record{order(0, 40, "a", "tea"), order(0, 41, "b", "cup")}},
		{Partition: 1, Records: []*kgo.Record{order(1, 70, "a", "tea"), order(1, 71, "b", "pot")}},
	}}}}}
}

// The loop of a consumer: poll, claim, act, commit.
func Example() {
	ctx := context.Background()
	extractor, err := messageid.New(messageid.Source{From: "header", Name: "message-id"})
	if err != nil {
		panic(err)
	}
	// a real one is in dedup/postgres, redis, cassandra or embedded
	store := memory.New(memory.Options{})
	defer store.Close()
	scope := dedup.Scope{ConsumerGroup: "shipping", Name: "orders", TTL: 7 * 24 * time.Hour,
		Buckets: 64, Extractor: extractor.String()}
	if err := store.Register(ctx, scope); err != nil {
		panic(err)
	}
	deduper := dedup.New(scope, store, dedup.Options{Extractor: extractor})

	for range 2 { // the first time the process dies before it commits
		messages := dedup.Messages(poll())
		judgements, err := deduper.Judge(ctx, messages)
		if err != nil {
			panic(err) // ctx ended: commit nothing
		}
		for i, j := range judgements {
			r := messages[i].Record
			switch j.Verdict {
			case dedup.VerdictFirst, dedup.VerdictMine:
				fmt.Printf("%d/%d %s: %v, ship it\n", r.Partition, r.Offset, r.Value, j.Verdict)
			default:
				fmt.Printf("%d/%d %s: %v of %d/%d\n", r.Partition, r.Offset, r.Value, j.Verdict,
					j.Owner.Partition, j.Owner.Offset)
			}
		}
		// Everything is shipped: client.CommitUncommittedOffsets(ctx)
	}
	// Output:
	// 0/40 tea: first, ship it
	// 0/41 cup: first, ship it
	// 1/70 tea: duplicate of 0/40
	// 1/71 pot: conflict of 0/41
	// 0/40 tea: mine, ship it
	// 0/41 cup: mine, ship it
	// 1/70 tea: duplicate of 0/40
	// 1/71 pot: conflict of 0/41
}

// Claims without Kafka: lines of files that are uploaded again and again. The place of a line is
// its owner, so a line that is read again after a crash knows itself.
func ExampleStore() {
	ctx := context.Background()
	var store dedup.Store = memory.New(memory.Options{})
	defer store.Close()
	scope := dedup.Scope{ConsumerGroup: "import", Name: "bookings", TTL: 30 * 24 * time.Hour,
		Buckets: 64, Extractor: "column 1"}
	if err := store.Register(ctx, scope); err != nil {
		panic(err)
	}
	claim := func(file, line int, booking string) {
		place := dedup.Coordinates{Partition: int32(file), Offset: int64(line)}
		answers, err := store.Claim(ctx, scope,
			[]dedup.Claim{{ID: dedup.ID(booking), Owner: place}})
		if err != nil {
			panic(err) // some answers are Undecided: claim these again
		}
		fmt.Printf("file %d, line %d: mine %t, just now %t\n", file, line,
			answers[0].Owner == place, answers[0].Outcome == dedup.Applied)
	}
	claim(1, 17, "booking 8")
	claim(2, 3, "booking 8")
	claim(1, 17, "booking 8")
	// Output:
	// file 1, line 17: mine true, just now true
	// file 2, line 3: mine false, just now false
	// file 1, line 17: mine true, just now false
}
