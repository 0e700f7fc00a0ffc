package process

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"golang.org/x/sync/errgroup"

	"github.com/kdedup/kdedup/config"
	"github.com/kdedup/kdedup/connect"
	"github.com/kdedup/kdedup/connect/kafka"
	"github.com/kdedup/kdedup/consumer"
)

// lookEvery is the pause between two looks at the topics of the cluster, for the patterns. It
// differs by a tenth at random: processes that started together need not ask together.
const lookEvery = 30 * time.Second

func nextLook(every time.Duration) time.Duration {
	return every + time.Duration((rand.Float64()-0.5)*0.2*float64(every))
}

// looks is what the looks of a process at its cluster have shown so far. The goroutine of Run has
// it.
type looks struct {
	missed  map[string]bool // inputs with a pipeline that the last look did not find
	waiting map[string]bool // why topics of patterns have no pipeline, each reason with its place
	told    map[string]bool // waiting, of the look before

	// ends of the inputs that were there at the first start of their pattern, see dateStarts
	ends  map[string]map[int32]kadm.ListedOffset
	begun map[string]bool // patterns that have begun, by their names in the store

	refused map[string]error // why entries with names have no pipeline, by input; see admit
}

// expand asks the cluster for its topics. A topic that is missing must be missing in two looks: a
// broker that has just started may not know all.
func (p *running) expand(ctx context.Context, file config.Config) (config.Config, error) {
	if !file.HasPatterns() {
		return file, nil
	}
	ctx, cancel := context.WithTimeout(ctx, connect.StartTimeout)
	defer cancel()
	names, err := kafka.TopicNames(ctx, p.clusters.Input)
	if err != nil {
		return config.Config{}, fmt.Errorf("look for the topics of the patterns: %w", err)
	}
	missed := make(map[string]bool)
	for _, r := range p.active.Load().pipelines {
		input := r.topic.Input
		if !r.topic.Origin.Pattern || slices.Contains(names, input) {
			continue
		}
		missed[input] = true
		if !p.looks.missed[input] && !r.over() {
			names = append(names, input)
		}
	}
	p.looks.missed = missed
	p.forgetEnds(names)
	expanded, left := file.Expand(names)
	p.looks.told, p.looks.waiting = p.looks.waiting, make(map[string]bool)
	for _, err := range left {
		p.waits(err)
	}
	return expanded, p.keepsAll(names, expanded, left)
}

// keepsAll refuses an outcome that would end the pipeline of a topic that is there, because
// something else came into its way.
func (p *Process) keepsAll(names []string, to config.Config, left []error) error {
	if len(left) == 0 {
		return nil
	}
	for _, r := range p.active.Load().pipelines {
		stays := func(t config.Topic) bool { return t.Input == r.topic.Input }
		if r.topic.Origin.Pattern && slices.Contains(names, r.topic.Input) &&
			!slices.ContainsFunc(to.Topics, stays) {
			return fmt.Errorf("the pipeline of %s would end: %w", r.topic.Input,
				errors.Join(left...))
		}
	}
	return nil
}

// waits tells why a topic has no pipeline, if the look before did not show it.
func (p *Process) waits(err error) {
	reason := err.Error()
	if !p.looks.told[reason] && !p.looks.waiting[reason] {
		p.log.Error("a topic of a pattern gets no pipeline yet", "error", err)
	}
	p.looks.waiting[reason] = true
	p.families.waiting.Set(float64(len(p.looks.waiting)))
}

// rescan applies what a look at the topics of the cluster shows. The file stays as it is.
func (p *running) rescan(ctx context.Context, giveUp context.CancelFunc) {
	file := p.active.Load().file
	to, err := p.expand(ctx, file)
	if err == nil {
		err = p.apply(ctx, file, to, giveUp, asLook)
	}
	if err != nil && ctx.Err() == nil {
		p.log.Warn("topics of patterns, and entries that wait, were not looked at, what runs "+
			"goes on", "error", err)
	}
}

// preparedAtOnce entries of patterns are prepared side by side: each asks brokers and store some
// ten questions, one after the other.
const preparedAtOnce = 16

// prepareMatched prepares entries of patterns, each for itself: one that cannot begin waits, and
// holds up no other. One that runs already, and would be another pipeline, holds up the reload.
func (p *running) prepareMatched(
	ctx context.Context, file, c config.Config, entries []connect.Entry,
) (ready []connect.Entry, err error) {
	if err := p.dateStarts(ctx, file, entries); err != nil {
		return nil, err
	}
	refusals := make([]error, len(entries))
	preparing, each := errgroup.WithContext(ctx)
	preparing.SetLimit(preparedAtOnce)
	for i := range entries {
		preparing.Go(func() error {
			err := p.prepareOne(each, c, entries[i:i+1])
			running := p.active.Load().find(entries[i].ConsumerGroup)
			runs := running != nil && !running.over()
			if err != nil && (unreachable(err) || each.Err() != nil || runs) {
				return err
			}
			refusals[i] = err
			return nil
		})
	}
	if err := preparing.Wait(); err != nil {
		return nil, err
	}
	for i, refusal := range refusals {
		if refusal == nil {
			ready = append(ready, entries[i])
		} else {
			p.waits(refusal)
		}
	}
	p.families.waiting.Set(float64(len(p.looks.waiting)))
	return ready, p.noteStarts(ctx, file, ready)
}

func (p *running) prepareOne(ctx context.Context, c config.Config, one []connect.Entry) error {
	ctx, cancel := context.WithTimeout(ctx, connect.StartTimeout)
	defer cancel()
	e := one[0]
	c.Topics = []config.Topic{e.Topic}
	if err := connect.SetupMissing(ctx, p.clusters, c, one, p.log); err != nil {
		return err
	}
	if err := connect.CheckTopics(ctx, p.clusters, c, one); err != nil {
		return err
	}
	p.tellSettings(ctx, one)
	p.tellNamesakes(ctx, one)
	return p.register(ctx, one)
}

// tellNamesakes warns before the first lane joins where the group has members of this instance: two
// processes with one take the transactional IDs from each other for as long as both live. A static
// member stays in its group while it restarts, so there it says nothing.
func (p *running) tellNamesakes(ctx context.Context, entries []connect.Entry) {
	instance, own := p.Config().Instance, make(map[string][]string)
	for _, e := range entries {
		for lane := range e.Lanes {
			if !e.StaticMember {
				own[e.ConsumerGroup] = append(own[e.ConsumerGroup],
					memberOf(e.Topic, instance, lane))
			}
		}
	}
	if len(own) == 0 { // without names all groups would be described
		return
	}
	found, err := kafka.Namesakes(ctx, p.clusters.Input, own)
	if err != nil {
		p.log.Debug("it is not known who is in the groups", "error", err)
	}
	for _, e := range entries {
		if hosts := found[e.ConsumerGroup]; len(hosts) > 0 {
			p.log.Warn("the group has a member of this instance already: the process before, if it "+
				"was killed, which leaves when its session ends; or another process, and then the "+
				"two stop each other: give each its own instance (--instance, KDEDUP_INSTANCE)",
				"topic", e.Input, "instance", instance, "hosts", hosts)
		}
	}
}

// tellSettings warns of topics that refuse or lose records. What setup would refuse runs already,
// or was told by it.
func (p *running) tellSettings(ctx context.Context, entries []connect.Entry) {
	for _, e := range entries {
		tell := connect.WarnOf(p.log, e.Topic)
		if err := connect.CompareTopics(ctx, p.clusters, e.Topic, true, tell); err != nil {
			tell(err.Error())
		}
	}
}

// named and matched part the entries by whether the file names their inputs.
func named(entries []connect.Entry) (named, matched []connect.Entry) {
	for _, e := range entries {
		if e.Origin.Pattern {
			matched = append(matched, e)
		} else {
			named = append(named, e)
		}
	}
	return named, matched
}

// over reports whether the pipeline has ended.
func (r *pipelineRun) over() bool {
	select {
	case <-r.ended:
		return true
	default:
		return false
	}
}

// lostInput reports whether the pipeline of a pattern ended because its topic did. The next look
// takes it away, or begins it again on the topic that has the name now.
func (r *pipelineRun) lostInput() bool {
	return r.topic.Origin.Pattern && errors.Is(r.err, consumer.ErrInputReplaced)
}
