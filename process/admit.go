package process

import (
	"context"
	"maps"

	"github.com/kdedup/kdedup/config"
	"github.com/kdedup/kdedup/connect"
)

// What one entry lacks stops no other one. An entry that is refused at a start waits, and each
// look tries it again. A start at which all are refused ends, as one with a single entry does.

// admit returns the entries that pass a check. The others are noted with the reason. An outage
// concerns all, and is no refusal.
func (p *Process) admit(
	ctx context.Context, entries []connect.Entry, check func([]connect.Entry) error,
) (admitted []connect.Entry, err error) {
	err = check(entries)
	if err == nil || len(entries) == 0 || unreachable(err) || ctx.Err() != nil {
		return entries, err
	}
	refused := make([]error, len(entries))
	for i := range entries {
		one := entries[i : i+1]
		switch refusal := check(one); {
		case refusal == nil:
			admitted = append(admitted, one...)
		case unreachable(refusal) || ctx.Err() != nil:
			return nil, refusal
		default:
			refused[i] = refusal
		}
	}
	for i, refusal := range refused {
		if refusal != nil {
			p.refuse(entries[i], refusal, len(admitted) > 0)
		}
	}
	if len(admitted) == 0 {
		return nil, noneAdmitted{err}
	}
	return admitted, nil
}

// noneAdmitted is why all entries were refused.
type noneAdmitted struct{ error }

func (n noneAdmitted) Unwrap() error { return n.error }

// refuse notes why an entry waits, and tells it once; a start at which none goes on ends with it.
func (p *Process) refuse(e connect.Entry, reason error, others bool) {
	before := p.looks.refused[e.Input]
	if before == nil && others || before != nil && before.Error() != reason.Error() {
		p.log.Error("an entry cannot begin, the others go on: it is tried again",
			"topic", e.Input, "error", reason)
	}
	next := maps.Clone(p.looks.refused) // /readyz reads the earlier one
	if next == nil {
		next = make(map[string]error)
	}
	next[e.Input] = reason
	p.looks.refused = next
}

// accept forgets why entries waited.
func (p *Process) accept(entries []connect.Entry) {
	next := maps.Clone(p.looks.refused)
	for _, e := range entries {
		delete(next, e.Input)
	}
	p.looks.refused = next
}

// stillRefused forgets entries that are in the file no more.
func (p *Process) stillRefused(topics []config.Topic) map[string]error {
	still := make(map[string]error)
	for _, t := range topics {
		if reason := p.looks.refused[t.Input]; reason != nil {
			still[t.Input] = reason
		}
	}
	p.looks.refused = still
	return still
}

// withOnly is a configuration for the checks of some entries alone.
func withOnly(c config.Config, entries []connect.Entry) config.Config {
	c.Topics = nil
	for _, e := range entries {
		c.Topics = append(c.Topics, e.Topic)
	}
	return c
}

// incomplete reports whether an entry has no pipeline that runs.
func (p *Process) incomplete() bool {
	for _, r := range p.active.Load().pipelines {
		if r.over() {
			return true
		}
	}
	return len(p.looks.refused) > 0
}
