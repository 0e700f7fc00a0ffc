package pipeline_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/kdedup/kdedup/consumer"
	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/internal/telemetry"
	"github.com/kdedup/kdedup/internal/testkit"
	"github.com/kdedup/kdedup/pipeline"
)

// tripping is a tracer that panics: at one record until it is fixed, and at the begin and the end
// of every trace.
type tripping struct {
	partition int32
	offset    int64
	fixed     atomic.Bool
}

type trippingTrace struct {
	*tripping
	batch *consumer.Batch
}

func (t *tripping) Begin(_ int, b *consumer.Batch, _ time.Time) pipeline.Trace {
	if b.Records[0].Offset == 0 {
		panic("no trace of the first batch")
	}
	return trippingTrace{t, b}
}

func (t trippingTrace) Step(string)         {}
func (t trippingTrace) End(pipeline.Ending) { panic("no end") }

func (t trippingTrace) Revised(int, pipeline.Outcome) {}
func (t trippingTrace) Span() telemetry.Span          { return telemetry.Span{} }
func (t trippingTrace) Spans() []pipeline.RecordSpan  { return nil }

func (t trippingTrace) Decided(record int, _ *dedup.Judgement, _ pipeline.Outcome) {
	if r := t.batch.Records[record]; r.Partition == t.partition && r.Offset == t.offset &&
		!t.fixed.Load() {
		panic("no decision")
	}
}

// A defect that one record meets is no reason to hold up the others, and must not end the process.
func TestARecordThatPanicsHoldsItsPartitionByItself(t *testing.T) {
	event(t, 1, func(t *testing.T, s *site) {
		trips := &tripping{partition: 1, offset: 40}
		s.tracer, s.batch = trips, 10
		records := orders(400, 30)
		s.produce(records...)
		run := s.start("one")
		testkit.Eventually(t, 30*time.Second, "a partition that is held", func() bool {
			held := run.Held()
			return len(held) == 1 &&
				held[0] == "orders[1] held at offset 40: panic: panic: no decision"
		})
		s.waitLogged("a record made kdedup panic: please report it", "partition=1 offset=40")
		s.waitLogged("a batch has no trace: please report it")
		behind := int64(0)
		for _, r := range records {
			if r.Partition == 1 && r.Offset >= 40 {
				behind++
			}
		}
		s.waitCommitted(400 - behind)
		testkit.Eventually(t, 30*time.Second, "two more tries", func() bool {
			return len(s.logs.with("a record made kdedup panic")) >= 3
		})
		trips.fixed.Store(true)
		s.finish(400)
		if n := s.failures(); n > 0 {
			t.Errorf("the lanes failed %v times", n)
		}
	})
}
