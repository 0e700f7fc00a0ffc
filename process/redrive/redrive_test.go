package redrive

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/connect/logreader"
	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/forwarder"
	"github.com/kdedup/kdedup/internal/testkit"
)

const absent = "missing_id_absent"

func fakeRig(t *testing.T) *rig {
	t.Helper()
	_, brokers := testkit.FakeKafka(t)
	return newRig(t, brokers)
}

// The configuration did not find IDs that are there.
func TestADeadLetterReachesTheCleanTopicByteForByteWithAClaim(t *testing.T) {
	testkit.Kafkas(t, 1, func(t *testing.T, brokers []string) {
		r := newRig(t, brokers)
		a := r.record("a", "A")
		r.dead(a, absent)
		r.want(r.run(r.options(Clean, r.dlq)), 1, 0)
		got := r.read(r.clean)
		if len(got) != 1 {
			t.Fatalf("%d records", len(got))
		}
		if diff := cmp.Diff(a.Headers, got[0].Headers); diff != "" ||
			!bytes.Equal(got[0].Key, a.Key) || !bytes.Equal(got[0].Value, a.Value) ||
			!got[0].Timestamp.Equal(a.Timestamp) || got[0].Partition != a.Partition {
			t.Errorf("%+v of %+v\n%s", got[0], a, diff)
		}
		copied := r.record("a", "A")
		if v := r.claim(copied, r.own(copied)); v != dedup.VerdictDuplicate {
			t.Errorf("a copy on the input is judged %v", v)
		}
	})
}

func TestALetterIsRedrivenOnceWhateverIsSelected(t *testing.T) {
	r := fakeRig(t)
	for _, id := range []string{"a", "b", "c"} {
		r.dead(r.record(id, id), absent)
	}
	one := r.options(Clean, r.dlq)
	one.Select.IDs = []dedup.ID{"b"}
	report := r.run(one)
	r.want(report, 1, 0)
	if report.NotSelected != 2 {
		t.Errorf("%+v", report)
	}
	r.want(r.run(r.options(Input, r.dlq)), 2, 1)
	r.want(r.run(r.options(Clean, r.dlq)), 0, 3)
	r.wantOn(r.clean, "b")
	r.wantOn(r.name, "a", "c")
}

// With at_least_once, or after a rewind, a lane dead-letters a record a second time.
func TestLettersOfOneRecordAreRedrivenOnce(t *testing.T) {
	r := fakeRig(t)
	a, tooLarge := r.record("", "A"), r.record("b", "B")
	r.claim(tooLarge, r.own(tooLarge))
	for range 2 {
		r.dead(a, "tombstone")
		r.dead(tooLarge, forwarder.ReasonTooLarge)
	}
	o := r.options(Clean, r.dlq)
	o.Passes = func(dedup.Verdict) bool { return true }
	r.want(r.run(o), 2, 2)
	r.dead(a, "tombstone")
	r.dead(tooLarge, forwarder.ReasonTooLarge)
	o.Letters = r.describe(r.dlq)
	r.want(r.run(o), 0, 6)
	r.wantOn(r.clean, "A", "B")
}

// The record had claimed its ID before no topic took it.
func TestARecordThatNoTopicTookGoesOnWithItsClaim(t *testing.T) {
	for into, topic := range map[Into]func(*rig) string{
		Clean: func(r *rig) string { return r.clean },
		Input: func(r *rig) string { return r.name },
	} {
		r := fakeRig(t)
		a := r.record("a", "A")
		r.claim(a, r.own(a))
		r.dead(a, forwarder.ReasonTimestamp)
		open := r.options(into, r.dlq)
		open.Handled = func(dedup.Coordinates, time.Time) bool { return false }
		r.want(r.run(open), 0, 0, "not_committed 1")
		report := r.run(r.options(into, r.dlq))
		r.want(report, 1, 0)
		r.wantOn(topic(r), "A")
		again := r.record("a", "A")
		want := dedup.VerdictDuplicate
		if into == Input {
			want = dedup.VerdictFirst
		}
		if got := r.claim(again, r.own(again)); got != want ||
			report.Released != int64(into) { // of Input, which is 1
			t.Errorf("the next record is judged %v, %d released", got, report.Released)
		}
	}
}

// It had no ID then. The operator has set the offsets back, and it was forwarded.
func TestARecordThatWasReadAgainIsACopyOfItself(t *testing.T) {
	r := fakeRig(t)
	a := r.record("a", "A")
	r.dead(a, absent)
	r.claim(a, r.own(a))
	r.want(r.run(r.options(Clean, r.dlq)), 0, 0, "duplicate 1")
	r.want(r.run(r.options(Input, r.dlq)), 0, 0, "duplicate 1")
}

// Brokers before 3.1 tell no topic IDs with the records of the input.
func TestTheOwnerWithoutATopicIDIsNotTakenForALetterWithItsNumbers(t *testing.T) {
	r := fakeRig(t)
	a := r.record("a", "A")
	a.Partition, a.Offset = 0, 0
	r.claim(a, dedup.Coordinates{})
	r.dead(a, absent) // to the same place
	r.want(r.run(r.options(Clean, r.dlq)), 0, 0, "duplicate 1")
}

func TestWhatWouldComeBackOrBeTwiceIsRefused(t *testing.T) {
	r := fakeRig(t)
	first := r.record("taken", "first")
	r.claim(first, r.own(first))
	r.dead(r.record("", "no ID yet"), absent)
	r.dead(r.record("taken", "first"), absent)
	r.dead(r.record("taken", "another"), "conflict")
	tooOften := r.record("often", "again")
	tooOften.Headers = append(tooOften.Headers,
		kgo.RecordHeader{Key: forwarder.HeaderRedrives, Value: []byte("3")})
	r.dead(tooOften, forwarder.ReasonTooLarge)
	elsewhere := r.record("e", "of another pipeline")
	elsewhere.Topic = "refunds"
	r.dead(elsewhere, absent)
	if err := r.client.ProduceSync(
		t.Context(), &kgo.Record{Topic: r.dlq, Value: []byte("of nobody")},
	).FirstErr(); err != nil {
		t.Fatal(err)
	}
	outside := r.record("outside", "x")
	outside.Partition = 7
	r.dead(outside, absent)
	old := r.record("old", "x")
	old.Timestamp = time.UnixMilli(time.Now().Add(-2 * time.Hour).UnixMilli())
	r.dead(old, absent)
	o := r.options(Input, r.dlq)
	o.Target.Retention = time.Hour
	report := r.run(o)
	r.want(report, 0, 0, "missing_id 1", "duplicate 1", "conflict 1", "redriven_too_often 1",
		"not_a_letter 1", "no_such_partition 1", "too_old 1")
	if report.OtherPipelines != 1 {
		t.Errorf("%+v", report)
	}
	r.wantOn(r.name)
	o.Now, o.Select.IDs = true, []dedup.ID{"old"}
	r.want(r.run(o), 1, 0, "not_a_letter 1")
}

// The pipeline need not have judged the first one yet, and a dry run claims nothing.
func TestCopiesAmongTheLettersOfOneRedriveAreTold(t *testing.T) {
	r := fakeRig(t)
	first := r.record("a", "A")
	r.dead(first, absent)
	for _, value := range []string{"A", "B"} {
		record := r.record("a", value)
		record.Partition = first.Partition
		r.dead(record, absent)
	}
	for _, into := range []Into{Input, Clean} {
		o := r.options(into, r.dlq)
		o.BatchRecords, o.DryRun = 1, into == Clean
		if into == Clean {
			o.Marks = testkit.Topic(t, r.brokers, "redrive.nothing", 1, nil)
		}
		r.want(r.run(o), 1, 0, "duplicate 1", "conflict 1")
	}
	r.wantOn(r.name, "A")
}

func TestARecordThatComesBackIsCountedAndRefusedInTheEnd(t *testing.T) {
	r := fakeRig(t)
	r.dead(r.record("a", "A"), absent)
	for n := range 4 {
		o := r.options(Input, r.dlq)
		if n == 3 {
			r.want(r.run(o), 0, 3, "redriven_too_often 1")
			return
		}
		r.want(r.run(o), 1, int64(n))
		sent := r.read(r.name)
		back := *sent[len(sent)-1]
		for _, record := range sent { // the newest on any partition
			if len(record.Headers) > 0 && string(last(record.Headers).Value) ==
				string(rune('1'+n)) {
				back = *record
			}
		}
		r.dead(&back, absent)
	}
}

func last(headers []kgo.RecordHeader) kgo.RecordHeader { return headers[len(headers)-1] }

// A conflict was no copy. Its own copies are.
func TestAConflictIsForwardedOnceForEachContentAndOnlyWithConsent(t *testing.T) {
	r := fakeRig(t)
	first := r.record("a", "first")
	r.claim(first, r.own(first))
	note := forwarder.Note{Verdict: "conflict", Owned: true, ClaimedAt: time.Now()}
	for _, value := range []string{"other", "other", "third"} {
		record := r.record("a", value)
		record.Key = first.Key
		r.dropped(record, note)
	}
	r.want(r.run(r.options(Clean, r.dup)), 0, 0, "conflict 3")
	o := r.options(Clean, r.dup)
	o.Conflicts, o.BatchRecords = true, 1
	r.want(r.run(o), 2, 0, "duplicate 1")
	late := r.record("a", "third")
	late.Key = first.Key
	r.dead(late, "conflict")
	o = r.options(Clean, r.dlq)
	o.Conflicts = true
	r.want(r.run(o), 0, 0, "duplicate 1")
	r.wantOn(r.clean, "other", "third")
}

// Behind the end of the claim nobody knows whose copy it is. A claim that was released before its
// end is an operator's word.
func TestADroppedCopyIsNoNewMessageBecauseItsClaimHasEnded(t *testing.T) {
	r := fakeRig(t)
	r.dropped(r.record("old", "x"), forwarder.Note{Verdict: "duplicate", Owned: true,
		ClaimedAt: time.Now().Add(-ttl - time.Minute)})
	r.dropped(r.record("released", "y"), forwarder.Note{Verdict: "duplicate", Owned: true,
		ClaimedAt: time.Now()})
	r.want(r.run(r.options(Clean, r.dup)), 1, 0, "claim_ended 1")
	r.wantOn(r.clean, "y")
}

func TestADryRunChangesNothing(t *testing.T) {
	r := fakeRig(t)
	a, b := r.record("a", "A"), r.record("b", "B")
	r.claim(b, r.own(b))
	r.dead(a, absent)
	r.dead(b, forwarder.ReasonTooLarge)
	for _, into := range []Into{Clean, Input} {
		o := r.options(into, r.dlq)
		o.DryRun = true
		r.want(r.run(o), 2, 0)
	}
	r.wantOn(r.clean)
	r.wantOn(r.name)
	r.wantOn(r.marks)
	if v := r.claim(a, r.own(a)); v != dedup.VerdictFirst {
		t.Errorf("the dry run has claimed: %v", v)
	}
	if v := r.claim(b, r.own(b)); v != dedup.VerdictMine {
		t.Errorf("the dry run has released: %v", v)
	}
}

func TestTheLimitIsKept(t *testing.T) {
	r := fakeRig(t)
	for _, id := range []string{"a", "b", "c", "d", "e"} {
		r.dead(r.record(id, id), absent)
	}
	for _, want := range []int64{2, 2, 1, 0} {
		o := r.options(Clean, r.dlq)
		o.Limit = 2
		if report := r.run(o); report.Redriven != want {
			t.Errorf("%d redriven, want %d", report.Redriven, want)
		}
	}
	r.wantOn(r.clean, "a", "b", "c", "d", "e")
}

// What the topic refuses stays where it is, and the others go.
func TestARecordThatTheTopicStillRefusesIsLeftAlone(t *testing.T) {
	brokers := testkit.Kafka(t)
	r := newRig(t, brokers)
	r.clean = testkit.Topic(t, brokers, "redrive.strict", partitions,
		map[string]string{"max.message.bytes": "1000"})
	r.dead(r.record("a", "A"), absent)
	var large strings.Builder // no compression makes it small
	for large.Len() < 3000 {
		large.WriteString(rand.Text())
	}
	r.dead(r.record("large", large.String()), forwarder.ReasonTooLarge)
	r.dead(r.record("b", "B"), absent)
	o := r.options(Clean, r.dlq) // the limit was lowered after it was asked for
	r.want(r.run(o), 2, 0, "record_too_large 1")
	o.Target.MaxBytes = map[string]int{r.clean: 1000}
	r.want(r.run(o), 0, 2, "record_too_large 1")
	r.wantOn(r.clean, "A", "B")
}

// A second redrive begins while the first one stands still between its claims and what it sends.
func TestARedriveThatWasReplacedSendsAndReleasesNothing(t *testing.T) {
	testkit.Kafkas(t, 1, func(t *testing.T, brokers []string) {
		r := newRig(t, brokers)
		a := r.record("a", "A")
		r.claim(a, r.own(a))
		r.dead(a, forwarder.ReasonTooLarge)
		o := r.options(Input, r.dlq)
		reached, goOn := make(chan struct{}), make(chan struct{})
		o.Handled = func(dedup.Coordinates, time.Time) bool {
			close(reached)
			<-goOn
			return true
		}
		failed := make(chan error)
		go func() {
			_, err := Run(t.Context(), o)
			failed <- err
		}()
		<-reached
		r.want(r.run(r.options(Input, r.dlq)), 1, 0)
		redriven := r.read(r.name)[0]
		at := dedup.Coordinates{TopicID: r.inputID, Partition: redriven.Partition,
			Offset: redriven.Offset}
		if v := r.claim(redriven, at); v != dedup.VerdictFirst {
			t.Errorf("the pipeline judges %v", v)
		}
		close(goOn)
		if err := <-failed; !errors.Is(err, ErrReplaced) {
			t.Errorf("the first one ends with %v", err)
		}
		if v := r.claim(redriven, at); v != dedup.VerdictMine {
			t.Errorf("the claim of the redriven record is gone: %v", v)
		}
		r.wantOn(r.name, "A")
	})
}

func TestAnInterruptedRedriveGoesOn(t *testing.T) {
	r := fakeRig(t)
	var want []string
	for i := range 40 {
		id := string(rune('A' + i))
		want = append(want, id)
		r.dead(r.record(id, id), absent)
	}
	ctx, interrupt := context.WithCancel(t.Context())
	o := r.options(Clean, r.dlq)
	o.BatchRecords = 7
	calls := 0
	o.Store = failing{r.store, func(string) error {
		if calls++; calls < 3 {
			return nil
		}
		interrupt()
		return context.Canceled
	}}
	report, err := Run(ctx, o)
	if !errors.Is(err, context.Canceled) || report.Redriven != 14 {
		t.Fatalf("%+v, %v", report, err)
	}
	r.want(r.run(r.options(Clean, r.dlq)), 26, 14)
	r.wantOn(r.clean, want...)
}

// A mark that nobody needs any more goes, and one whose letter is there stays.
func TestMarksOfLettersThatAreGoneAreTakenAway(t *testing.T) {
	r := fakeRig(t)
	r.dead(r.record("a", "A"), absent)
	r.want(r.run(r.options(Clean, r.dlq)), 1, 0)
	o := r.options(Clean, r.dlq)
	log := o.Letters
	m := &marks{times: map[mark]time.Time{}, log: &log, before: time.Now().Add(time.Second)}
	for _, record := range r.read(r.marks) {
		key, n, err := readMark(record)
		if err != nil {
			t.Fatal(err)
		}
		m.note(key, n)
	}
	if len(m.times) != 1 || len(m.erasures()) != 0 {
		t.Errorf("the letter is there, and its mark goes")
	}
	for p := range log.Partitions {
		log.Partitions[p] = logreader.Range{Start: 100, End: 100}
	}
	for _, record := range r.read(r.marks) {
		key, n, err := readMark(record)
		if err != nil {
			t.Fatal(err)
		}
		m.note(key, n)
	}
	if gone := m.erasures(); len(gone) != 1 || gone[0].Value != nil {
		t.Errorf("%d marks go", len(gone))
	}
}

func TestATopicThatHoldsOtherThingsThanMarksIsRefused(t *testing.T) {
	r := fakeRig(t)
	if err := r.client.ProduceSync(
		t.Context(), &kgo.Record{Topic: r.marks, Key: []byte("x"), Value: []byte("y")},
	).FirstErr(); err != nil {
		t.Fatal(err)
	}
	_, err := Run(t.Context(), r.options(Clean, r.dlq))
	if err == nil || !strings.Contains(err.Error(), "does another program write there?") {
		t.Errorf("got %v", err)
	}
}

func TestAScanFindsWhatIsSelected(t *testing.T) {
	r := fakeRig(t)
	r.dead(r.record("a", "A"), absent)
	r.dead(r.record("", "B"), absent)
	r.dead(r.record("c", "C"), "conflict")
	o := r.options(Input, r.dlq)
	o.Select.Reasons = []string{"missing_id"}
	found, err := Scan(t.Context(), o)
	if err != nil || found.Letters != 2 || len(found.IDs) != 1 || !found.IDs["a"] {
		t.Errorf("%+v, %v", found, err)
	}
}

// An attempt into the clean topic was killed behind its claims. The pipeline would take the record
// for a copy of its own letter.
func TestTheClaimOfAKilledAttemptDoesNotBlockTheWayIntoTheInput(t *testing.T) {
	r := fakeRig(t)
	r.dead(r.record("a", "A"), absent)
	ctx, interrupt := context.WithCancel(t.Context())
	o := r.options(Clean, r.dlq)
	o.Store = failing{r.store, func(string) error {
		interrupt()
		return context.Canceled
	}}
	if _, err := Run(ctx, o); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if report := r.run(r.options(Input, r.dlq)); report.Released != 1 {
		t.Errorf("%+v", report)
	}
	a := r.read(r.name)[0]
	if v := r.claim(a, r.own(a)); v != dedup.VerdictFirst {
		t.Errorf("the pipeline judges %v", v)
	}
}

func TestBrokersWithoutTopicIDsAreRefused(t *testing.T) {
	r := fakeRig(t)
	o := r.options(Clean, r.dlq)
	o.Letters.TopicID = [16]byte{}
	if _, err := Run(t.Context(), o); !errors.Is(err, errNoTopicIDs) {
		t.Errorf("got %v", err)
	}
}

func TestOffsetsAreReadAsPeopleWriteThem(t *testing.T) {
	for text, want := range map[string][]int64{"12": {12}, "10-12": {10, 11, 12}, "18-": {18, 19},
		"-1": {0, 1}} {
		got, err := ParseOffsets(text)
		s := Selection{Offsets: []OffsetRange{got}}
		var matched []int64
		for offset := range int64(20) {
			if s.matchesPlace(dedup.Coordinates{Offset: offset}) {
				matched = append(matched, offset)
			}
		}
		if err != nil || !slices.Equal(matched, want) {
			t.Errorf("%s: %v, %v", text, matched, err)
		}
	}
	for _, text := range []string{"", "-", "x", "1-x", "5-3", "--1", "1-2-3"} {
		if r, err := ParseOffsets(text); err == nil {
			t.Errorf("%q is taken for %v", text, r)
		}
	}
}
