package redrive

import (
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/forwarder"
)

// What is offered is what a redrive may do, and what it refuses for the letter itself is not.
func TestWaysAreThoseThatALetterDoesNotRuleOut(t *testing.T) {
	now := time.Now()
	young, old := now.Add(-time.Minute), now.Add(-2*ttl)
	for name, c := range map[string]struct {
		letter  forwarder.Letter
		missing dedup.MissingReason
		passes  dedup.Verdict
		apart   bool
		want    Ways
	}{
		"a conflict": {letter: forwarder.Letter{Reason: "conflict"}, want: Ways{AsConflict: true}},
		"a conflict that is forwarded by now": {letter: forwarder.Letter{Reason: "conflict"},
			passes: dedup.VerdictConflict, want: Ways{AsConflict: true, Input: true}},
		"a dropped conflict": {letter: forwarder.Letter{Verdict: "conflict"},
			want: Ways{AsConflict: true}},
		"no ID": {letter: forwarder.Letter{Reason: absent}, missing: dedup.MissingAbsent,
			want: Ways{First: remedies[MissingID]}},
		"no ID, which passes by now": {letter: forwarder.Letter{Reason: absent},
			missing: dedup.MissingAbsent, passes: dedup.VerdictMissing,
			want: Ways{Clean: true, Input: true}},
		"an ID that is found by now": {letter: forwarder.Letter{Reason: absent},
			want: Ways{Clean: true, Input: true}},
		"a tombstone": {letter: forwarder.Letter{Reason: "tombstone"},
			missing: dedup.MissingTombstone, want: Ways{Clean: true}},
		"no topic took it": {letter: forwarder.Letter{Reason: forwarder.ReasonTooLarge},
			want: Ways{Clean: true, Input: true}},
		"the input is on another cluster": {letter: forwarder.Letter{
			Reason: forwarder.ReasonTooLarge}, apart: true, want: Ways{Clean: true}},
		"it came back too often": {letter: forwarder.Letter{Reason: forwarder.ReasonTooLarge,
			Redrives: 3}, want: Ways{Clean: true}},
		"without its value": {letter: forwarder.Letter{Reason: "conflict", Stub: true},
			want: Ways{First: remedies[ValueMissing]}},
		"a copy": {letter: forwarder.Letter{Verdict: "duplicate", ClaimedAt: young},
			want: Ways{Clean: true, Input: true}},
		"a copy whose claim has ended": {letter: forwarder.Letter{Verdict: "duplicate",
			ClaimedAt: old}, want: Ways{First: remedies[ClaimEnded]}},
	} {
		p := Prospect{Letter: c.letter, Missing: c.missing, Apart: c.apart, MaxRedrives: 3,
			TTL: ttl, Passes: func(v dedup.Verdict) bool { return c.passes != 0 && v == c.passes }}
		if got := p.Ways(now); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}

func TestEarlierRedrivesAreKnownByTheirMarks(t *testing.T) {
	r := fakeRig(t)
	a, b := r.record("a", "A"), r.record("b", "B")
	r.dead(a, absent)
	r.dead(b, absent)
	one := r.options(Clean, r.dlq)
	one.Select.IDs = []dedup.ID{"a"}
	r.want(r.run(one), 1, 0)
	read := func(topic string) Earlier {
		t.Helper()
		sent, err := ReadEarlier(t.Context(), r.client, []kgo.Opt{kgo.SeedBrokers(r.brokers...)},
			topic, 100)
		if err != nil {
			t.Fatal(err)
		}
		return sent
	}
	sent := read(r.marks)
	if got, was := sent.Of(a); !was || got.Into != r.clean || time.Since(got.At) > time.Minute {
		t.Errorf("the letter that was sent: %+v, %v", got, was)
	}
	if got, was := sent.Of(b); was {
		t.Errorf("the letter that was not sent: %+v", got)
	}
	if got := read(r.marks + ".missing"); len(got) > 0 {
		t.Errorf("without a topic of marks: %+v", got)
	}
}
