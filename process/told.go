package process

import (
	"context"
	"maps"
	"time"

	"github.com/kdedup/kdedup/config"
	"github.com/kdedup/kdedup/connect"
	"github.com/kdedup/kdedup/pipeline"
)

const (
	totalsEvery = time.Minute
	readyEvery  = 200 * time.Millisecond
)

// announce says what a pipeline does, in the line that one looks for when it does something else.
func (p *Process) announce(r *pipelineRun) {
	t, one := r.topic, p.Config()
	one.Topics = []config.Topic{t}
	p.log.Info("pipeline: "+t.Input+" → "+t.Output, "group", t.ConsumerGroup,
		"mode", string(t.Mode), "delivery", string(t.Delivery), "ttl", t.TTL, "id", r.id,
		"store", connect.StoreInUse(one), "lanes", t.Lanes)
}

// tally is what all pipelines together have done with records, by outcome.
type tally map[pipeline.Outcome]int64

func (p *Process) counted() tally {
	sum := make(tally)
	for _, r := range p.active.Load().pipelines {
		outcomes := p.families.pipeline.Totals(r.topic.Input).Outcomes
		for _, o := range pipeline.Outcomes() {
			sum[o] += int64(outcomes[o.String()])
		}
	}
	return sum
}

func (t tally) since(earlier tally) tally {
	more := make(tally)
	for o, n := range t {
		more[o] = n - earlier[o]
	}
	return more
}

// fields leave out what did not happen.
func (t tally) fields() []any {
	var records int64
	for n := range maps.Values(t) {
		records += n
	}
	all := []any{"records", records}
	for _, o := range pipeline.Outcomes() {
		if t[o] != 0 {
			all = append(all, o.String(), t[o])
		}
	}
	return all
}

// tellTotals says once that all pipelines are ready, and then what became of the records since it
// last said so. Where nothing flows it is silent.
func (p *Process) tellTotals(ctx context.Context, every time.Duration) {
	began := time.Now()
	ready := time.NewTicker(readyEvery)
	defer ready.Stop()
	totals := time.NewTicker(every)
	defer totals.Stop()
	told := p.counted()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ready.C:
			if p.allReady() {
				ready.Stop()
				p.log.Info("ready", "pipelines", len(p.active.Load().pipelines),
					"after", time.Since(began).Round(time.Millisecond))
			}
		case <-totals.C:
			now := p.counted()
			if more := now.since(told).fields(); len(more) > 2 {
				p.log.Info("totals", append(more, "in", every)...)
			}
			told = now
		}
	}
}

func (p *Process) allReady() bool {
	for _, r := range p.active.Load().pipelines {
		if r.Ready() != nil {
			return false
		}
	}
	return true
}
