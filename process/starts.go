package process

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/kdedup/kdedup/config"
	"github.com/kdedup/kdedup/connect"
	"github.com/kdedup/kdedup/dedup"
)

// With start: latest, a pattern has one first start, at which all topics that match it then begin
// at their ends, also those that must wait for their setup. Topics that come later are read from
// their beginning. So the store remembers that a pattern has begun, and the process the ends.

// laterStarts are the patterns of the file with start: latest, each with the entries that it
// matches.
func laterStarts(file config.Config, entries []connect.Entry) map[string][]*connect.Entry {
	matched := make(map[string][]*connect.Entry)
	for i, t := range file.Topics {
		if t.Pattern == "" || t.Start != config.StartLatest {
			continue
		}
		// what tells the sets of scopes apart that patterns of other files stand for
		name := fmt.Sprintf("%s/%s %s", t.ScopeGroup, t.Scope, t.Pattern)
		matched[name] = nil
		for j := range entries {
			if strings.HasPrefix(entries[j].Path, fmt.Sprintf("topics[%d] (", i)) {
				matched[name] = append(matched[name], &entries[j])
			}
		}
	}
	return matched
}

// dateStarts tells the entries of patterns where their inputs ended at the first start of their
// pattern.
func (p *running) dateStarts(
	ctx context.Context, file config.Config, entries []connect.Entry,
) error {
	for name, matched := range laterStarts(file, entries) {
		if len(matched) == 0 {
			continue
		}
		began, err := p.began(ctx, name, matched)
		if err == nil && !began {
			err = p.keepEnds(ctx, matched)
		}
		if err != nil {
			return fmt.Errorf("find out where the topics of %s begin: %w", name, err)
		}
		for _, e := range matched {
			e.Ends = p.looks.ends[e.Input]
			if e.Ends == nil {
				e.Ends = make(map[int32]kadm.ListedOffset)
				p.log.Info("start: latest: a topic that came after the first start of its "+
					"pattern is read from its beginning, unless it was read before",
					"topic", e.Input)
			}
		}
	}
	return nil
}

// began asks the store once. A scope whose registrations cannot be read has not begun: its entry is
// refused for the same reason.
func (p *running) began(
	ctx context.Context, name string, matched []*connect.Entry,
) (bool, error) {
	if p.looks.begun[name] {
		return true, nil
	}
	for _, e := range matched {
		began, err := p.knowledge.Began(ctx, connect.ScopeOf(e.Topic, ""), name)
		if began || err != nil && (unreachable(err) || ctx.Err() != nil) {
			return began, err
		}
	}
	return false, nil
}

// keepEnds lists where the inputs end, unless that is known from an earlier try.
func (p *running) keepEnds(ctx context.Context, matched []*connect.Entry) error {
	var inputs []string
	for _, e := range matched {
		if p.looks.ends[e.Input] == nil {
			inputs = append(inputs, e.Input)
		}
	}
	if len(inputs) == 0 { // no topics would be all topics
		return nil
	}
	listed, err := kadm.NewClient(p.clusters.Input).ListCommittedOffsets(ctx, inputs...)
	if err != nil {
		return fmt.Errorf("list the ends of %s: %w", strings.Join(inputs, ", "), err)
	}
	if p.looks.ends == nil {
		p.looks.ends = make(map[string]map[int32]kadm.ListedOffset)
	}
	for _, input := range inputs {
		ends := make(map[int32]kadm.ListedOffset)
		for partition, end := range listed[input] {
			if end.Err != nil {
				return fmt.Errorf("list the end of %s[%d]: %w", input, partition, end.Err)
			}
			ends[partition] = end
		}
		p.looks.ends[input] = ends
	}
	return nil
}

// noteStarts has the store remember which patterns have begun.
func (p *running) noteStarts(
	ctx context.Context, file config.Config, ready []connect.Entry,
) error {
	var errs []error
	for name, matched := range laterStarts(file, ready) {
		scopes := []dedup.Scope{{}} // of a pattern that matches nothing yet
		if len(matched) > 0 {
			scopes = nil
		}
		for _, e := range matched {
			scopes = append(scopes, e.ClaimScope())
		}
		if p.looks.begun[name] && len(matched) == 0 {
			continue
		}
		if err := p.knowledge.NoteBegan(ctx, scopes, name); err != nil {
			errs = append(errs, fmt.Errorf("note that %s has begun: %w", name, err))
			continue
		}
		if p.looks.begun == nil {
			p.looks.begun = make(map[string]bool)
		}
		p.looks.begun[name] = true
	}
	return errors.Join(errs...)
}

// forgetEnds forgets those of topics that are gone: another one of the name begins later.
func (p *Process) forgetEnds(names []string) {
	for input := range p.looks.ends {
		if !slices.Contains(names, input) {
			delete(p.looks.ends, input)
		}
	}
}
