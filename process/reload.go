package process

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/kdedup/kdedup/config"
	"github.com/kdedup/kdedup/connect"
)

// applied are the settings outside of topics that a reload puts in force. All others belong to what
// the process has opened.
var applied = []string{"log.level", "reload.watch"}

// change is what a new configuration does to the pipelines.
type change struct {
	kept  map[string]*pipelineRun // by consumer group
	fresh []connect.Entry         // to be started: added, changed, or failing and the same
	ended []*pipelineRun          // to be ended: removed, or to be started again
}

// reload puts a configuration in force, or changes nothing and returns why not. Pipelines that are
// the same in both go on undisturbed. It is called by run alone: one reload ends before the next
// begins.
func (p *running) reload(ctx context.Context, to config.Config, giveUp context.CancelFunc) error {
	expanded, err := p.expand(ctx, to)
	if err != nil {
		return unready{err}
	}
	if err := refused(p.Config(), expanded); err != nil {
		return err
	}
	return p.apply(ctx, to, expanded, giveUp, asReload)
}

// cause is why the pipelines may change.
type cause string

const (
	asReload cause = "configuration reloaded"
	asLook   cause = "topics of patterns have come or gone"
)

// apply has the pipelines of a configuration run, in which the patterns of the file are expanded.
func (p *running) apply(
	ctx context.Context, file, to config.Config, giveUp context.CancelFunc, why cause,
) (err error) {
	if keepsOnly(file) {
		return p.applyKeeping(ctx, file, to, why)
	}
	c := p.active.Load().changeTo(to, why == asReload)
	if c.fresh, err = p.prepare(ctx, file, to, c.fresh, why); err != nil {
		return err
	}
	if why == asLook && len(c.fresh)+len(c.ended) == 0 {
		return nil
	}
	end(c.ended)
	if ctx.Err() != nil {
		return nil // run ends, and with it what is left
	}
	p.retire(c)
	if why == asReload {
		p.level.Set(levelOf(to.Log))
		p.families.config.Loaded(ConfigHash(file), time.Now())
	}
	for _, r := range p.activate(file, to, c.kept, c.fresh) {
		p.announce(r)
		r.begin(ctx, giveUp)
	}
	p.report(c, why)
	return nil
}

// changeTo compares by consumer group: an entry with another group is another pipeline. restart
// starts failing pipelines again.
func (a *active) changeTo(to config.Config, restart bool) change {
	c := change{kept: make(map[string]*pipelineRun)}
	for _, e := range connect.Entries(to.Topics) {
		r := a.find(e.ConsumerGroup)
		if r != nil && sameTopic(r.topic, e.Topic) && !r.over() && !(restart && r.failing()) {
			c.kept[e.ConsumerGroup] = r
			continue
		}
		c.fresh = append(c.fresh, e)
	}
	for _, r := range a.pipelines {
		if c.kept[r.topic.ConsumerGroup] == nil {
			c.ended = append(c.ended, r)
		}
	}
	return c
}

// sameTopic leaves out where in the file the entries stand.
func sameTopic(a, b config.Topic) bool {
	a.Origin.Path, b.Origin.Path = "", ""
	return reflect.DeepEqual(a, b)
}

// refused names everything that the file alone shows to be impossible in a running process.
func refused(from, to config.Config) error {
	var errs []error
	restart := slices.DeleteFunc(to.Differences(from), func(path string) bool {
		return slices.Contains(applied, path)
	})
	if len(restart) > 0 {
		errs = append(errs, fmt.Errorf("restart to apply: %s", strings.Join(restart, ", ")))
	}
	errs = append(errs, moved(from, to)...)
	for _, e := range connect.Entries(to.Topics) {
		at := slices.IndexFunc(from.Topics, func(t config.Topic) bool {
			return t.ConsumerGroup == e.ConsumerGroup
		})
		if at >= 0 {
			errs = append(errs, refusedEntry(e, from.Topics[at])...)
		}
	}
	return errors.Join(errs...)
}

// moved refuses variables that name an entry by a number which is that of another one now: the
// entry would silently lose the setting, and the other one get it.
func moved(from, to config.Config) (errs []error) {
	for _, name := range slices.Sorted(maps.Keys(from.NumberedEnv)) {
		before, now := from.NumberedEnv[name], to.NumberedEnv[name]
		stays := slices.ContainsFunc(to.Topics, func(t config.Topic) bool {
			return t.Input == before || t.Pattern == before
		})
		switch {
		case now == before:
		case now != "":
			errs = append(errs, fmt.Errorf("%s was about the entry of %s, and would be about that "+
				"of %s: write %s in its place, or leave the entry where it was", name, before, now,
				config.NamedEnv(name, before)))
		case stays:
			errs = append(errs, fmt.Errorf("%s was about the entry of %s, and would be about none: "+
				"write %s in its place, or leave the entry where it was", name, before,
				config.NamedEnv(name, before)))
		}
	}
	return errs
}

// refusedEntry names the settings that give a group's offsets, fences and claims their meaning.
// What depends on the store, message_id and buckets, is compared by register.
func refusedEntry(e connect.Entry, before config.Topic) (errs []error) {
	for _, s := range []struct{ key, before, now, why string }{
		{"input", before.Input, e.Input,
			"the group's offsets and fences are those of the old input"},
		{"scope", before.Scope, e.Scope, "copies of what was forwarded so far would be forwarded"},
		{"scope_group", before.ScopeGroup, e.ScopeGroup,
			"copies of what was forwarded so far would be forwarded"},
		{"fence_topic", before.FenceTopic, e.FenceTopic,
			"what was forwarded so far would be forwarded again if it is read again"},
	} {
		if s.before != s.now {
			errs = append(errs,
				fmt.Errorf(
					"%s.%s: was %s and is now %s: %s; set it back, or restart if that is meant",
					e.Path, s.key, s.before, s.now, s.why))
		}
	}
	return errs
}

// prepare does for some entries what a start does for all, before anything that runs is touched.
func (p *running) prepare(
	ctx context.Context, file, to config.Config, fresh []connect.Entry, why cause,
) ([]connect.Entry, error) {
	fresh, matched := named(fresh)
	fresh, err := p.prepareOrWait(ctx, fresh, why)
	if err != nil {
		return nil, unready{err}
	}
	ready, err := p.prepareMatched(ctx, file, to, matched)
	if err != nil {
		return nil, unready{err}
	}
	return append(fresh, ready...), nil
}

// prepareOrWait prepares entries with names. Those that wait already, or have ended by themselves,
// are tried each for itself. Any other one that cannot begin refuses the reload that brings it.
func (p *running) prepareOrWait(
	ctx context.Context, fresh []connect.Entry, why cause,
) ([]connect.Entry, error) {
	prepare := func(some []connect.Entry) error { return p.prepareNamed(ctx, some) }
	var brought, waiting []connect.Entry
	for _, e := range fresh {
		if why == asReload && p.looks.refused[e.Input] == nil {
			brought = append(brought, e)
		} else {
			waiting = append(waiting, e)
		}
	}
	if err := prepare(brought); err != nil {
		return nil, err
	}
	admitted, err := p.admit(ctx, waiting, prepare)
	if err != nil && !errors.As(err, new(noneAdmitted)) {
		return nil, err
	}
	p.accept(admitted)
	return append(brought, admitted...), nil
}

func (p *running) prepareNamed(ctx context.Context, fresh []connect.Entry) error {
	ctx, cancel := context.WithTimeout(ctx, connect.StartTimeout)
	defer cancel()
	if len(fresh) == 0 {
		return nil
	}
	if err := p.checkNamed(ctx, p.Config(), fresh); err != nil {
		return err
	}
	return p.register(ctx, fresh)
}

// checkNamed makes what entries lack that ask for it, and asks the brokers whether they can begin.
func (p *running) checkNamed(ctx context.Context, c config.Config, entries []connect.Entry) error {
	if err := connect.SetupMissing(ctx, p.clusters, c, entries, p.log); err != nil {
		return err
	}
	return connect.CheckTopics(ctx, p.clusters, withOnly(c, entries), entries)
}

// unready marks what may be good without another file: a topic is made, or the store comes back.
type unready struct{ error }

func (e unready) Unwrap() error { return e.error }

// retire takes away the series of lanes that have ended. Those of a pipeline that is started again
// come back, and its counters go on; those of a pipeline that is removed are gone, unless another
// one has its input.
func (p *Process) retire(c change) {
	for _, r := range c.ended {
		input := r.topic.Input
		shares := func(k *pipelineRun) bool { return k.topic.Input == input }
		again := func(e connect.Entry) bool { return e.Input == input }
		switch {
		case slices.ContainsFunc(slices.Collect(maps.Values(c.kept)), shares):
		case slices.ContainsFunc(c.fresh, again):
			p.families.retire(input)
		default:
			p.families.forget(input)
		}
	}
}

func (p *Process) report(c change, why cause) {
	var started, ended []string
	for _, e := range c.fresh {
		started = append(started, e.Input)
	}
	for _, r := range c.ended {
		ended = append(ended, r.topic.Input)
		if r.err != nil && !r.lostInput() {
			p.log.Warn("the pipeline did not end well", "topic", r.topic.Input, "error", r.err)
		}
	}
	p.log.Info(string(why), "ended", ended, "started", started,
		"undisturbed", len(c.kept))
}
