package migration

import (
	"fmt"
	"slices"

	"github.com/kdedup/kdedup/config"
	"github.com/kdedup/kdedup/connect"
)

// namespace is what the claims of a scope stand under.
type namespace struct{ group, name string }

func namespaceOf(t config.Topic) namespace { return namespace{t.ScopeGroup, t.Scope} }

func (n namespace) String() string { return n.group + "/" + n.name }

// pair is a scope that is moved, and all entries of both files that claim in it.
type pair struct {
	old, new   namespace
	olds, news []connect.Entry
}

// plan finds the scope of each topic in both files; topic is that of one, or empty.
func plan(olds, news []config.Topic, topic string) ([]*pair, error) {
	var pairs []*pair
	for _, e := range connect.Entries(news) {
		if topic != "" && e.Input != topic {
			continue
		}
		before, err := connect.FindTopic(olds, e.Input)
		if err != nil || before.Input != e.Input {
			return nil, fmt.Errorf("%s: the file of --from has no topic with the input %s",
				e.Path, e.Input)
		}
		old, new := namespaceOf(before), namespaceOf(e.Topic)
		at := slices.IndexFunc(pairs, func(p *pair) bool { return p.old == old || p.new == new })
		if at < 0 {
			pairs = append(pairs, &pair{old: old, new: new, olds: claimants(olds, old),
				news: claimants(news, new)})
			continue
		}
		if p := pairs[at]; p.old != old || p.new != new {
			return nil, fmt.Errorf("%s: scope %s becomes %s, and scope %s becomes %s: scopes "+
				"cannot be parted or joined", e.Path, old, new, p.old, p.new)
		}
	}
	for _, p := range pairs {
		if err := p.check(); err != nil {
			return nil, err
		}
	}
	if len(pairs) == 0 {
		return nil, fmt.Errorf("--topic must be the input of a topic in both files, got %q", topic)
	}
	return pairs, nil
}

// claimants are the entries of a scope.
func claimants(topics []config.Topic, of namespace) []connect.Entry {
	return slices.DeleteFunc(connect.Entries(topics), func(e connect.Entry) bool {
		return namespaceOf(e.Topic) != of
	})
}

// check wants the same inputs on both sides, also those that were not asked for.
func (p *pair) check() error {
	inputs := func(entries []connect.Entry) (inputs []string) {
		for _, e := range entries {
			inputs = append(inputs, e.Input)
		}
		slices.Sort(inputs)
		return inputs
	}
	if olds, news := inputs(p.olds), inputs(p.news); !slices.Equal(olds, news) {
		return fmt.Errorf("scope %s has the claims of %v, and scope %s would have those of %v: "+
			"scopes cannot be parted or joined", p.old, olds, p.new, news)
	}
	return nil
}
