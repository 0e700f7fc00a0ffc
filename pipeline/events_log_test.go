package pipeline_test

import (
	"bytes"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"

	"github.com/kdedup/kdedup/internal/testkit"
)

// A damaged batch is not taken for data: its checksum fails the lane until the broker sends it
// whole.
func TestADamagedFetchIsReadAgain(t *testing.T) {
	event(t, 1, func(t *testing.T, s *site) {
		s.start("one")
		s.waitBalanced(2) // what a rebalance gives back is not looked at
		damaged := 0
		s.network.tamper(kmsg.Fetch, func(answer []byte) error {
			at := bytes.LastIndex(answer, []byte("key-order"))
			if at >= 0 && damaged < 3 {
				damaged++
				answer[at] ^= 0xff
			}
			return nil
		})
		// Uncompressed, so that the damage can be aimed.
		client, err := kgo.NewClient(append(slices.Clip(s.admin),
			kgo.RecordPartitioner(kgo.ManualPartitioner()),
			kgo.ProducerBatchCompression(kgo.NoCompression()))...)
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		if err := client.ProduceSync(t.Context(), orders(1000, 80)...).FirstErr(); err != nil {
			t.Fatal(err)
		}
		s.finish(1000)
		if n := s.network.count(&damaged); n != 3 {
			t.Errorf("%d answers were damaged", n)
		}
		s.waitLogged("lane failed, joining again", "crc")
	})
}

// Compaction leaves holes, also at the end: the offsets to commit are those that were read.
func TestACompactedInputIsReadOverItsHoles(t *testing.T) {
	event(t, 1, func(t *testing.T, s *site) {
		s.compactInput()
		for _, r := range []*kgo.Record{
			state("k1", "a", "A"), state("k2", "b", "B"), state("k1", "c", "C"),
			state("k3", "d", "D"), state("k2", "e", "E"), state("k4", "d", "D"),
		} {
			s.produce(r) // one batch each, so that whole batches go
		}
		s.cluster.Compact()
		kept := s.texts(input)
		if len(kept) >= 6 {
			t.Fatalf("nothing was compacted away: %q", kept)
		}
		run := s.start("one")
		s.waitOutcomes(len(kept))
		if err := run.stop(); err != nil {
			t.Error(err)
		}
		s.produce(state("k5", "f", "F"), state("k1", "c", "C"))
		s.start("one")
		s.waitOutcomes(len(kept) + 2)
		if diff := cmp.Diff([]string{"0:C", "0:D", "0:E", "0:F"}, s.texts(output)); diff != "" {
			t.Error(diff)
		}
	})
}

// Transactions of the input's producers end with markers, and those that were aborted are not read.
// Behind the last record stands only what has no records.
func TestAnInputThatEndsWithMarkersIsReadToItsEnd(t *testing.T) {
	event(t, 1, func(t *testing.T, s *site) {
		shop, err := kgo.NewClient(append(slices.Clip(s.admin), kgo.TransactionalID("shop"),
			kgo.RecordPartitioner(kgo.ManualPartitioner()))...)
		if err != nil {
			t.Fatal(err)
		}
		defer shop.Close()
		sell := func(end kgo.TransactionEndTry, records ...*kgo.Record) {
			t.Helper()
			if err := shop.BeginTransaction(); err != nil {
				t.Fatal(err)
			}
			if err := shop.ProduceSync(t.Context(), records...).FirstErr(); err != nil {
				t.Fatal(err)
			}
			if err := shop.EndTransaction(t.Context(), end); err != nil {
				t.Fatal(err)
			}
		}
		sell(kgo.TryCommit, message(0, "a", "A"), message(1, "b", "B"))
		sell(kgo.TryAbort, message(0, "c", "aborted"), message(2, "d", "aborted"),
			message(3, "a", "aborted"))
		run := s.start("one")
		s.waitOutcomes(2)
		if err := run.stop(); err != nil {
			t.Error(err)
		}
		sell(kgo.TryAbort, message(1, "e", "aborted"))
		sell(kgo.TryCommit, message(0, "c", "C"), message(3, "d", "D"), message(2, "b", "B"))
		s.start("one")
		s.waitOutcomes(5)
		s.waitNoLag()
		if diff := cmp.Diff([]string{"0:A", "0:C", "1:B", "3:D"}, s.texts(output)); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff(
			map[string]int{"forwarded": 4, "duplicate": 1}, s.outcomes(),
		); diff != "" {
			t.Error(diff)
		}
	})
}

// waitNoLag waits until the group's offsets are at the last stable offsets.
func (r *rig) waitNoLag() {
	r.t.Helper()
	admin := kadm.NewClient(r.client)
	testkit.Eventually(r.t, 30*time.Second, "offsets at the end of the input", func() bool {
		ends, err := admin.ListCommittedOffsets(r.t.Context(), input)
		if err != nil {
			return false
		}
		offsets, err := admin.FetchOffsets(r.t.Context(), group)
		behind := err != nil
		ends.Each(func(end kadm.ListedOffset) {
			at, ok := offsets.Lookup(input, end.Partition)
			behind = behind || !ok || at.At != end.Offset
		})
		return !behind
	})
}

// Retention removes what was never read: that is lost. What is still there is read.
func TestDeletedRecordsAreSkippedAndTheRestIsRead(t *testing.T) {
	event(t, 1, func(t *testing.T, s *site) {
		s.produce(message(0, "a", "A"), message(1, "b", "B"))
		if err := s.startAndFinish("one", 2); err != nil {
			t.Error(err)
		}
		s.produce(message(0, "c", "C"))
		s.produce(message(0, "d", "D"))
		if err := s.cluster.DeleteRecords(input, 0, 2); err != nil {
			t.Fatal(err)
		}
		s.start("one")
		s.waitOutcomes(3)
		if diff := cmp.Diff([]string{"0:A", "0:D", "1:B"}, s.texts(output)); diff != "" {
			t.Error(diff)
		}
	})
}

// Long polls that end empty, and a topic that stays empty for a while.
func TestEmptyFetchesAreNoBatches(t *testing.T) {
	event(t, 1, func(t *testing.T, s *site) {
		empty := s.cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Fetch}, Observe: true,
			Count: -1})
		s.start("one")
		s.waitHits(empty, 6)
		if n := s.counter("kdedup_batches_total", "result", "committed"); n > 0 {
			t.Errorf("%v batches were committed of an empty topic", n)
		}
		s.produce(orders(500, 82)...)
		s.finish(500)
	})
}

// Brokers before 2.8 know no topic IDs, those before 4.0 end transactions in the older way.
func TestOldBrokersKeepThePromise(t *testing.T) {
	for name, version := range map[string]*kversion.Versions{
		"2.5": kversion.V2_5_0(), "2.8": kversion.V2_8_0(), "3.9": kversion.V3_9_0(),
	} {
		t.Run(name, func(t *testing.T) {
			event(t, 1, func(t *testing.T, s *site) {
				s.produce(orders(1000, 83)...)
				if err := s.startAndFinish("one", 1000); err != nil {
					t.Error(err)
				}
				s.rewind()
				s.start("one")
				s.finish(1000)
				testkit.Eventually(t, 30*time.Second, "the rewind in the metrics", func() bool {
					return s.counter("kdedup_rewinds_total") > 0
				})
			}, kfake.MaxVersions(version))
		})
	}
}
