package dedup

import "time"

// Verdict is what the claim says about one record.
type Verdict uint8

const (
	// VerdictUnclaimed: the store, or who knows the ID, could not be asked in time and the policy
	// does not insist.
	VerdictUnclaimed Verdict = iota
	// VerdictMissing: the record has no message ID, so there is nothing to claim.
	VerdictMissing
	// VerdictFirst: this record claimed the ID just now.
	VerdictFirst
	// VerdictMine: this record owns the ID through an earlier attempt that never committed.
	VerdictMine
	// VerdictReplay: this record owns the ID and an earlier attempt did commit.
	VerdictReplay
	// VerdictDuplicate: another record with the same content owns the ID, or it was claimed by
	// hand.
	VerdictDuplicate
	// VerdictConflict: another record with other content owns the ID.
	VerdictConflict
	// VerdictInherited: another record owns the ID, which was never forwarded and is gone from the
	// input: compacted away, for example. Package dedup cannot know that; kdedup's pipeline does.
	VerdictInherited
	// VerdictExempt: the record is none of those that have a message ID, see MissingExempt.
	VerdictExempt
	// VerdictTombstone: the record has no value, see MissingTombstone.
	VerdictTombstone
)

// VerdictCount is the length of an array by verdict.
const VerdictCount = len(verdictNames)

var verdictNames = [...]string{"unclaimed", "missing", "first", "mine", "replay", "duplicate",
	"conflict", "inherited", "exempt", "tombstone"}

// String is the verdict in metrics, headers and logs.
func (v Verdict) String() string { return verdictNames[v] }

// Verdicts lists every verdict, for metrics that exist from the start.
func Verdicts() []Verdict {
	all := make([]Verdict, len(verdictNames))
	for i := range all {
		all[i] = Verdict(i)
	}
	return all
}

// Judgement is the verdict about one record and what it rests on.
type Judgement struct {
	Verdict   Verdict
	Missing   MissingReason // why there is no ID, if there is none
	Owner     Coordinates   // who owns the ID, if the record has one and could claim it
	ClaimedAt time.Time
}

// Own reports whether the record owns its ID, or stands for the record that does.
func (j *Judgement) Own() bool {
	return j.Verdict == VerdictFirst || j.Verdict == VerdictMine || j.Verdict == VerdictReplay ||
		j.Verdict == VerdictInherited
}

// Owned reports whether the ID's owner is known, which may be the record itself.
func (j *Judgement) Owned() bool { return j.Own() || j.Copy() }

// Copy reports whether another record owns the ID.
func (j *Judgement) Copy() bool {
	return j.Verdict == VerdictDuplicate || j.Verdict == VerdictConflict
}

// judge compares the owner of an ID with the record that asks. Every record compares for itself,
// also when it shared the claim of an equal ID in its batch: after an abort the batch is cut
// differently, another copy may lead, and the true owner must still recognise itself.
func judge(m Message, fingerprint Fingerprint, a Answer) Judgement {
	j, own := Judgement{Owner: a.Owner, ClaimedAt: a.ClaimedAt}, a.Owner.Same(m.Owner)
	switch {
	case a.Outcome == Undecided:
		return Judgement{Verdict: VerdictUnclaimed}
	case own && a.Outcome == Applied:
		j.Verdict = VerdictFirst
	case own && !m.Settled.IsZero() && !a.ClaimedAt.After(m.Settled):
		j.Verdict = VerdictReplay
	case own:
		j.Verdict = VerdictMine
	case a.Fingerprint.Matches(fingerprint):
		j.Verdict = VerdictDuplicate
	default:
		j.Verdict = VerdictConflict
	}
	return j
}
