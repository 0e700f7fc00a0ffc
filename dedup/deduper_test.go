package dedup

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kgo"
)

// scripted answers each call of Claim by the next function.
type scripted struct {
	t     *testing.T
	calls [][]Claim
	next  []func([]Claim) ([]Answer, error)
}

func (s *scripted) Claim(_ context.Context, _ Scope, claims []Claim) ([]Answer, error) {
	s.calls = append(s.calls, claims)
	if len(s.next) == 0 {
		s.t.Fatalf("call %d of Claim was not expected", len(s.calls))
	}
	answer := s.next[0]
	if len(s.next) > 1 {
		s.next = s.next[1:]
	}
	return answer(claims)
}

func applied(claims []Claim) ([]Answer, error) {
	answers := make([]Answer, len(claims))
	for i, c := range claims {
		answers[i] = Answer{Outcome: Applied, Owner: c.Owner, Fingerprint: c.Fingerprint}
	}
	return answers, nil
}

var errStore = errors.New("no quorum")

func undecidedAll(claims []Claim) ([]Answer, error) { return make([]Answer, len(claims)), errStore }

func newDeduper(t *testing.T, store Claimer, retry Retry) *Deduper {
	t.Helper()
	return New(Scope{}, store, Options{Extractor: firstHeader{}, Retry: retry, Observer: &heard{}})
}

// firstHeader finds a record's ID in its first header. What counts is the value.
type firstHeader struct{}

func (firstHeader) Extract(r *kgo.Record) (ID, MissingReason) {
	if len(r.Headers) == 0 {
		return "", MissingAbsent
	}
	return ID(r.Headers[0].Value), NotMissing
}

func (firstHeader) String() string { return "the first header" }

func (firstHeader) Notice() string { return "" }

func (firstHeader) Fingerprinter() Fingerprinter { return firstHeader{} }

func (firstHeader) Of(r *kgo.Record) Fingerprint {
	sum := sha256.Sum256(r.Value)
	return Fingerprint(sum[:])
}

// heard is an Observer that counts.
type heard struct {
	undecided, again, unresolved int
	waits                        atomic.Bool
}

func (h *heard) Unresolved(records int)         { h.unresolved += records; h.waits.Store(true) }
func (h *heard) Undecided(claims int)           { h.undecided += claims; h.waits.Store(true) }
func (h *heard) Again()                         { h.again++ }
func (h *heard) Ended()                         { h.waits.Store(false) }
func (h *heard) Judged([]Answer, time.Duration) {}

func heardOf(d *Deduper) *heard { return d.observer.(*heard) }

// messageAt is a record at an offset of partition 0; no ID means no header.
func messageAt(offset int64, id, value string) Message {
	r := &kgo.Record{Offset: offset, Value: []byte(value)}
	if id != "" {
		r.Headers = []kgo.RecordHeader{{Key: "id", Value: []byte(id)}}
	}
	return Message{Record: r, Owner: Coordinates{Offset: offset, LeaderEpoch: 1}}
}

func verdicts(judgements []Judgement) (list []Verdict) {
	for _, j := range judgements {
		list = append(list, j.Verdict)
	}
	return list
}

func TestVerdicts(t *testing.T) {
	me, other := Coordinates{Offset: 1}, Coordinates{Offset: 2}
	mine, foreign := Fingerprint{1}, Fingerprint{2}
	until := time.UnixMilli(1_700_000_000_000)
	cases := []struct {
		name    string
		settled bool
		answer  Answer
		want    Verdict
	}{
		{"applied", false, Answer{Outcome: Applied, Owner: me, Fingerprint: mine}, VerdictFirst},
		{"applied although below the fence: the earlier claim has ended", true,
			Answer{Outcome: Applied, Owner: me, Fingerprint: mine}, VerdictFirst},
		{"owned by itself", false, Answer{Outcome: Exists, Owner: me, Fingerprint: mine},
			VerdictMine},
		{"owned by itself, below the fence", true,
			Answer{Outcome: Exists, Owner: me, Fingerprint: mine, ClaimedAt: until}, VerdictReplay},
		{"owned by itself since it was below the fence", true, Answer{Outcome: Exists, Owner: me,
			Fingerprint: mine, ClaimedAt: until.Add(time.Millisecond)}, VerdictMine},
		{"owned by another", false, Answer{Outcome: Exists, Owner: other, Fingerprint: mine},
			VerdictDuplicate},
		{"owned by another, below the fence", true,
			Answer{Outcome: Exists, Owner: other, Fingerprint: mine}, VerdictDuplicate},
		{"owned by another with other content", false,
			Answer{Outcome: Exists, Owner: other, Fingerprint: foreign}, VerdictConflict},
		{"claimed by hand, without content", false, Answer{Outcome: Exists, Owner: other},
			VerdictDuplicate},
		{"applied for another copy of this batch", false,
			Answer{Outcome: Applied, Owner: other, Fingerprint: mine}, VerdictDuplicate},
		{"undecided", false, Answer{}, VerdictUnclaimed},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			m := Message{Owner: me}
			if c.settled {
				m.Settled = until
			}
			if c.answer.ClaimedAt.IsZero() {
				c.answer.ClaimedAt = until
			}
			if got := judge(m, mine, c.answer); got.Verdict != c.want {
				t.Errorf("got %v, want %v", got.Verdict, c.want)
			}
		})
	}
}

func TestEqualIDsShareOneClaim(t *testing.T) {
	store := &scripted{t: t, next: []func([]Claim) ([]Answer, error){applied}}
	got, err := newDeduper(t, store, DefaultRetry).Judge(t.Context(), []Message{
		messageAt(1, "a", "A"), messageAt(2, "b", "B"), messageAt(3, "a", "A"),
		messageAt(4, "", "none"), messageAt(5, "a", "other"),
	})
	if err != nil {
		t.Fatal(err)
	}
	want := []Verdict{VerdictFirst, VerdictFirst, VerdictDuplicate, VerdictMissing, VerdictConflict}
	if diff := cmp.Diff(want, verdicts(got)); diff != "" {
		t.Error(diff)
	}
	if got[3].Missing != MissingAbsent || got[2].Owner.Offset != 1 {
		t.Errorf("got %+v", got)
	}
	if len(store.calls) != 1 || len(store.calls[0]) != 2 {
		t.Errorf("claimed %v", store.calls)
	}
}

// After an abort the batch may be cut so that another copy leads. The owner, now a follower, must
// not take the leader's verdict for its own.
func TestAFollowerThatOwnsTheIDRecognisesItself(t *testing.T) {
	owner := messageAt(7, "a", "A")
	store := &scripted{t: t, next: []func([]Claim) ([]Answer,
		error){func(claims []Claim) ([]Answer, error) {
		return []Answer{{Outcome: Exists, Owner: owner.Owner, Fingerprint: claims[0].Fingerprint}},
			nil
	}}}
	got, err := newDeduper(t, store, DefaultRetry).Judge(t.Context(),
		[]Message{messageAt(3, "a", "A"), owner})
	if diff := cmp.Diff([]Verdict{VerdictDuplicate, VerdictMine}, verdicts(got)); diff != "" ||
		err != nil {
		t.Error(diff, err)
	}
}

// A client may go back in the log while the batch is filled. The record comes first once, or is
// forwarded twice.
func TestARecordThatIsTwiceInABatchOwnsItsIDOnce(t *testing.T) {
	record, copied := messageAt(3, "a", "A"), messageAt(2, "a", "A")
	for want, outcome := range map[Verdict]Outcome{VerdictFirst: Applied, VerdictMine: Exists} {
		store := &scripted{t: t, next: []func([]Claim) ([]Answer,
			error){func(claims []Claim) ([]Answer, error) {
			return []Answer{{Outcome: outcome, Owner: record.Owner,
				Fingerprint: claims[0].Fingerprint}}, nil
		}}}
		d := newDeduper(t, store, DefaultRetry)
		for range 2 { // the second batch is not held to the first
			got, err := d.Judge(t.Context(), []Message{record, copied, record, record})
			if diff := cmp.Diff(
				[]Verdict{want, VerdictDuplicate, VerdictDuplicate, VerdictDuplicate},
				verdicts(got),
			); diff != "" || err != nil {
				t.Error(diff, err)
			}
		}
	}
}

func TestABatchWithoutIDsAsksNobody(t *testing.T) {
	got, err := newDeduper(t, &scripted{t: t}, DefaultRetry).Judge(t.Context(),
		[]Message{messageAt(1, "", "A")})
	if diff := cmp.Diff([]Verdict{VerdictMissing}, verdicts(got)); diff != "" || err != nil {
		t.Error(diff, err)
	}
}

// Whatever the store fails with, a claim that was decided is not sent again.
func TestOnlyUndecidedClaimsAreRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		half := func(claims []Claim) ([]Answer, error) {
			answers, _ := applied(claims)
			clear(answers[:len(answers)/2])
			return answers, errStore
		}
		store := &scripted{t: t, next: []func([]Claim) ([]Answer, error){half, half, undecidedAll,
			applied}}
		d := newDeduper(t, store, DefaultRetry)
		var messages []Message
		for i := range int64(8) {
			messages = append(messages, messageAt(i, fmt.Sprint(i), "A"))
		}
		got, err := d.Judge(t.Context(), messages)
		if err != nil {
			t.Fatal(err)
		}
		for i, j := range got {
			if j.Verdict != VerdictFirst || j.Owner.Offset != int64(i) {
				t.Errorf("record %d: %+v", i, j)
			}
		}
		var sizes []int
		for _, call := range store.calls {
			sizes = append(sizes, len(call))
		}
		if diff := cmp.Diff([]int{8, 4, 2, 2}, sizes); diff != "" {
			t.Error(diff)
		}
		if got := heardOf(d).undecided; got != 8 {
			t.Errorf("%d claims were told as undecided, want 4+2+2", got)
		}
		if heardOf(d).waits.Load() {
			t.Error("the lane still waits for the store, as it is told")
		}
	})
}

func TestPausesGrowToTheirBound(t *testing.T) {
	r := Retry{First: 20 * time.Millisecond, Max: 5 * time.Second}
	for n, most := range map[int]time.Duration{
		1: 20 * time.Millisecond, 2: 40 * time.Millisecond, 8: 2560 * time.Millisecond,
		9: 5 * time.Second, 1000: 5 * time.Second,
	} {
		for range 100 {
			if got := r.pause(n); got < most/2 || got > most {
				t.Fatalf("pause %d is %v, want %v to %v", n, got, most/2, most)
			}
		}
	}
}

func TestJudgingEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		why := errors.New("revoked")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Minute, func() { cancel(why) })
		store := &scripted{t: t, next: []func([]Claim) ([]Answer, error){undecidedAll}}
		d := newDeduper(t, store, DefaultRetry)
		waited := make(chan bool, 1)
		time.AfterFunc(30*time.Second, func() { waited <- heardOf(d).waits.Load() })
		start := time.Now()
		if _, err := d.Judge(ctx, []Message{messageAt(1, "a", "A")}); !errors.Is(err, why) ||
			time.Since(start) != time.Minute {
			t.Errorf("got %v after %v", err, time.Since(start))
		}
		if !<-waited {
			t.Error("nobody was told that the lane waited")
		}
		// Its partitions are gone; it may never claim again.
		if heardOf(d).waits.Load() {
			t.Error("the lane still waits for the store, as it is told")
		}
		if heardOf(d).again == 0 || heardOf(d).undecided == 0 {
			t.Error("nobody was told that claims were repeated")
		}
	})
}

// The grace is that of the outage, not of the batch: once it has passed, the next batches wait no
// more.
func TestAnOutageThatLastsLetsRecordsPassUnclaimed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		retry := DefaultRetry
		retry.GiveUpAfter = 30 * time.Second
		store := &scripted{t: t, next: []func([]Claim) ([]Answer, error){undecidedAll}}
		d := newDeduper(t, store, retry)
		judgeOne := func() (Verdict, time.Duration) {
			t.Helper()
			start := time.Now()
			got, err := d.Judge(t.Context(), []Message{messageAt(1, "a", "A")})
			if err != nil {
				t.Fatal(err)
			}
			return got[0].Verdict, time.Since(start)
		}
		if verdict, took := judgeOne(); verdict != VerdictUnclaimed || took < 30*time.Second ||
			took > 36*time.Second {
			t.Errorf("%v after %v", verdict, took)
		}
		if verdict, took := judgeOne(); verdict != VerdictUnclaimed || took != 0 {
			t.Errorf("the next batch: %v after %v", verdict, took)
		}
		store.next = []func([]Claim) ([]Answer, error){applied}
		if verdict, _ := judgeOne(); verdict != VerdictFirst {
			t.Errorf("after the outage: %v", verdict)
		}
		store.next = []func([]Claim) ([]Answer, error){undecidedAll}
		if _, took := judgeOne(); took < 30*time.Second {
			t.Errorf("a new outage was given only %v", took)
		}
	})
}

// An outage that nobody saw go on is over: a single failure later is given the whole grace.
func TestAFailureLongAfterAnOutageBeginsAnother(t *testing.T) {
	for name, outage := range map[string]func(*testing.T, *Deduper){
		"its wait was ended": func(t *testing.T, d *Deduper) {
			ctx, cancel := context.WithTimeout(t.Context(), 29*time.Second)
			defer cancel()
			if _, err := d.Judge(ctx, []Message{messageAt(1, "a", "A")}); err == nil {
				t.Error("the wait was not ended")
			}
			time.Sleep(2 * time.Second) // the group gives the partitions out again
		},
		"records passed, and none came for a while": func(t *testing.T, d *Deduper) {
			if _, err := d.Judge(t.Context(), []Message{messageAt(1, "a", "A")}); err != nil {
				t.Error(err)
			}
			time.Sleep(time.Minute)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				retry := DefaultRetry
				retry.GiveUpAfter = 30 * time.Second
				store := &scripted{t: t, next: []func([]Claim) ([]Answer, error){undecidedAll}}
				d := newDeduper(t, store, retry)
				outage(t, d)
				store.next = []func([]Claim) ([]Answer, error){undecidedAll, applied}
				got, err := d.Judge(t.Context(), []Message{messageAt(2, "b", "B")})
				if diff := cmp.Diff([]Verdict{VerdictFirst}, verdicts(got)); diff != "" ||
					err != nil {
					t.Error(diff, err)
				}
			})
		})
	}
}

func TestScopeMismatchNamesBothValues(t *testing.T) {
	registered := Scope{ConsumerGroup: "g", Name: "orders", Buckets: 256, Extractor: "key"}
	now := registered
	if err := CompareScopes(now, registered); err != nil {
		t.Error(err)
	}
	now.Buckets = 64
	want := "scope g/orders: the scope was registered with other settings: buckets was 256 and " +
		"is now 64: the claims made so far would not be found; set buckets back, or name another " +
		"scope: kdedup migrate moves the claims there"
	if err := CompareScopes(now, registered); !errors.Is(err, ErrScopeMismatch) ||
		err.Error() != want {
		t.Errorf("got %v", err)
	}
}

func TestAnotherFingerprintIsAMismatchOfItsOwn(t *testing.T) {
	registered := Scope{ConsumerGroup: "g", Name: "orders", Extractor: `json:"id"`}
	now := registered
	now.Extractor = `json:"id"; fingerprint ignore "ts_ms"`
	for want, scopes := range map[string][2]Scope{
		`fingerprint was all and is now ignore "ts_ms"`: {registered, now},
		`fingerprint was ignore "ts_ms" and is now all`: {now, registered},
		`message_id was key and is now json:"id"; fingerprint ignore "ts_ms"`: {
			{Extractor: "key"}, now},
	} {
		err := CompareScopes(scopes[1], scopes[0])
		if !errors.Is(err, ErrScopeMismatch) || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

func TestAPanicIsToldWithItsMessage(t *testing.T) {
	d := newDeduper(t, &scripted{t: t, next: []func([]Claim) ([]Answer, error){applied}},
		DefaultRetry)
	broken := messageAt(1, "b", "B")
	broken.Record = nil
	_, err := d.Judge(t.Context(), []Message{messageAt(0, "a", "A"), broken,
		messageAt(2, "c", "C")})
	var tripped *Tripped
	if !errors.As(err, &tripped) || tripped.Message != 1 || len(tripped.Stack) == 0 {
		t.Fatalf("got %+v", err)
	}
	if _, err := d.Judge(
		t.Context(), []Message{messageAt(0, "a", "A"), messageAt(2, "c", "C")},
	); err != nil {
		t.Error(err)
	}
}

// The owner comes again, as after a failure, and a copy is in its batch: they share the claim.
func TestACopyInTheBatchOfItsOwnerRenewsTheClaim(t *testing.T) {
	sliding := Scope{TTL: time.Hour, Sliding: true}
	owner := messageAt(1, "a", "A")
	for name, c := range map[string]struct {
		batch []Message
		want  bool
	}{
		"the owner alone":          {[]Message{owner}, false},
		"the owner twice":          {[]Message{owner, owner}, false},
		"a copy alone":             {[]Message{messageAt(2, "a", "A")}, true},
		"a copy behind the owner":  {[]Message{owner, messageAt(2, "a", "A")}, true},
		"a copy before the owner":  {[]Message{messageAt(2, "a", "A"), owner}, true},
		"another ID by the owner":  {[]Message{owner, messageAt(3, "b", "B")}, false},
		"a copy with other values": {[]Message{owner, messageAt(2, "a", "B")}, true},
	} {
		t.Run(name, func(t *testing.T) {
			claims := newDeduper(t, nil, DefaultRetry).Fold(c.batch)
			if got := claims[0].Renews(sliding, owner.Owner); got != c.want {
				t.Errorf("renews = %t, want %t", got, c.want)
			}
			if claims[0].Renews(Scope{TTL: time.Hour}, owner.Owner) {
				t.Error("renews in a scope that is not sliding")
			}
		})
	}
}
