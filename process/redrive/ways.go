package redrive

import (
	"time"

	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/forwarder"
)

// Prospect is what a letter tells of where it can go, before anything is claimed.
type Prospect struct {
	Letter  forwarder.Letter
	Missing dedup.MissingReason              // as message_id finds its ID now
	Passes  func(verdict dedup.Verdict) bool // as in Options
	Apart   bool                             // the input is on another cluster than the letters
	// MaxRedrives as in Options.
	MaxRedrives int
	TTL         time.Duration
}

// Ways are where a letter can be sent. A redrive decides all the same: only it asks the store.
type Ways struct {
	Clean      bool
	AsConflict bool // to the clean topic, beside the owner of its ID
	Input      bool
	First      string // where it can go nowhere: why, and what to do first
}

// Ways are those that no redrive refuses for what the letter itself tells.
func (p Prospect) Ways(now time.Time) Ways {
	l := p.Letter
	into := func(passes bool) bool { return passes && !p.Apart && l.Redrives < p.MaxRedrives }
	switch verdict := p.Missing.Verdict(); {
	case l.Stub:
		return Ways{First: remedies[ValueMissing]}
	case l.Verdict == dedup.VerdictDuplicate.String() && !l.ClaimedAt.After(now.Add(-p.TTL)):
		return Ways{First: remedies[ClaimEnded]}
	case p.Missing == dedup.NotMissing && whyOf(l) == dedup.VerdictConflict.String():
		return Ways{AsConflict: true, Input: into(p.Passes(dedup.VerdictConflict))}
	case p.Missing == dedup.NotMissing:
		return Ways{Clean: true, Input: into(true)}
	case p.Missing == dedup.MissingTombstone:
		return Ways{Clean: true, Input: into(p.Passes(verdict))}
	case p.Passes(verdict):
		return Ways{Clean: true, Input: into(true)}
	}
	return Ways{First: remedies[MissingID]}
}

// OwnedStill is what to do about a dropped copy whose original still owns its ID.
func OwnedStill() string { return remedies[Duplicate] }
