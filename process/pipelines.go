package process

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/kdedup/kdedup/config"
	"github.com/kdedup/kdedup/connect"
	"github.com/kdedup/kdedup/pipeline"
)

// active is the configuration in force and the pipelines that carry it out, one for each of its
// topics and in their order. It is never changed: a reload puts another one in its place, so that
// every reader sees pipelines and configuration that belong together.
type active struct {
	file      config.Config // with its patterns
	config    config.Config // of file, with an entry for each pipeline
	since     time.Time
	pipelines []*pipelineRun
	refused   map[string]error // why entries with names have no pipeline, by input
}

// pipelineRun is one pipeline, from its first batch to its last.
type pipelineRun struct {
	topic config.Topic
	id    string // where it finds message IDs
	*pipeline.Pipeline
	stop  context.CancelFunc // nil until it began
	ended chan struct{}
	err   error // of Run; read it after ended
}

// find returns the pipeline of a consumer group, by which pipelines are told apart, or nil.
func (a *active) find(group string) *pipelineRun {
	at := slices.IndexFunc(a.pipelines, func(r *pipelineRun) bool {
		return r.topic.ConsumerGroup == group
	})
	if at < 0 {
		return nil
	}
	return a.pipelines[at]
}

// wait returns what the pipelines returned, when all have.
func (a *active) wait() error {
	var errs []error
	for _, r := range a.pipelines {
		<-r.ended
		if !r.lostInput() {
			errs = append(errs, r.err)
		}
	}
	return errors.Join(errs...)
}

// begin runs the pipeline until ctx ends or it is stopped. When it ends by itself, it cannot go on,
// and gives up, unless it is that of a topic of a pattern, which may come and go.
func (r *pipelineRun) begin(ctx context.Context, giveUp context.CancelFunc) {
	ctx, r.stop = context.WithCancel(ctx)
	go func() {
		r.err = r.Run(ctx)
		alone := ctx.Err() == nil && !r.lostInput()
		r.stop()
		close(r.ended)
		if alone {
			giveUp()
		}
	}()
}

// endWithTheLast ends the process when no pipeline can go on, or at a record for which the file
// says so (fail). Until then one that cannot is not ready, and each look tries to begin it again.
// The API goes on without pipelines, but for such a record.
func (p *Process) endWithTheLast(end context.CancelFunc) {
	pipelines := p.active.Load().pipelines
	runs := func(r *pipelineRun) bool { return !r.over() }
	fails := func(r *pipelineRun) bool { return r.over() && errors.Is(r.err, pipeline.ErrStop) }
	switch {
	case slices.ContainsFunc(pipelines, fails):
	case slices.ContainsFunc(pipelines, runs):
		return
	case p.serves():
		p.log.Error("no pipeline can go on, and the next look tries them again: the api answers " +
			"meanwhile")
		return
	}
	end()
}

// end has the pipelines finish their batches, side by side, and returns when they have left their
// groups.
func end(pipelines []*pipelineRun) {
	var wg sync.WaitGroup
	for _, r := range pipelines {
		wg.Go(func() {
			r.stop()
			<-r.ended
		})
	}
	wg.Wait()
}

// failing reports whether a lane fails again and again.
func (r *pipelineRun) failing() bool {
	return slices.ContainsFunc(r.Lanes(), func(l pipeline.LaneState) bool { return l.Failing })
}

// activate puts a configuration in force, but for topics of patterns that are neither kept nor
// fresh. Pipelines are made for the fresh entries; they are still to begin.
func (p *running) activate(
	file, c config.Config, kept map[string]*pipelineRun, fresh []connect.Entry,
) (made []*pipelineRun) {
	next := &active{file: file}
	all := c.Topics
	c.Topics = nil
	for _, t := range all {
		r := kept[t.ConsumerGroup]
		if r == nil {
			at := slices.IndexFunc(fresh, func(e connect.Entry) bool {
				return e.ConsumerGroup == t.ConsumerGroup
			})
			if at < 0 {
				continue
			}
			r = &pipelineRun{topic: t, id: fresh[at].Extractor.String(),
				Pipeline: p.pipeline(fresh[at]), ended: make(chan struct{})}
			made = append(made, r)
		}
		next.pipelines = append(next.pipelines, r)
		c.Topics = append(c.Topics, t)
	}
	next.config = c
	next.refused = p.stillRefused(all)
	next.since = time.Now()
	p.active.Store(next)
	return made
}
