package main

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/kdedup/kdedup/config"
	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/internal/certs"
	"github.com/kdedup/kdedup/pipeline"
	"github.com/kdedup/kdedup/server"
)

// started is when this process began.
var started = time.Now().UTC().Truncate(time.Millisecond)

// serverOptions give the server what it shows. The pipelines and the store may come later.
func (p *process) serverOptions() server.Options {
	c := p.config()
	return server.Options{
		Listen: c.Server.Listen, Hosts: c.Server.Hosts, Lookup: c.Server.Lookup, Pprof: c.Server.Pprof,
		Auth:     server.Auth{Username: c.Server.Auth.Username, Password: c.Server.Auth.Password.Reveal()},
		TLS:      certs.ServerFiles{CertFile: c.Server.TLS.CertFile, KeyFile: c.Server.TLS.KeyFile, ClientCAFile: c.Server.TLS.ClientCAFile},
		Gatherer: p.registry, Checks: p.checks, Source: &processStatus{p}, About: about(c),
		Secrets: c.Secrets(), Logger: p.log,
	}
}

// checks are what /readyz asks of the pipelines that run now.
func (p *process) checks() []server.Check {
	if waiting := p.starting.Load(); waiting != nil {
		return waiting.checks()
	}
	now := p.active.Load()
	scope := scopeOf(now.config.Topics[0], "")
	checks := []server.Check{{Name: server.StoreCheck, Func: func(ctx context.Context) error {
		_, err := p.store.Lookup(ctx, scope, "readiness probe")
		return err
	}}}
	for _, r := range now.pipelines {
		checks = append(checks, server.Check{
			Name: "topic " + r.topic.Input,
			Func: func(context.Context) error { return r.Ready() }, Notes: r.Held,
		})
	}
	return checks
}

func about(c config.Config) server.About {
	b := thisBuild()
	return server.About{
		Instance: c.Instance, Version: b.Version, Revision: b.short(), Started: started, Go: b.Go, Platform: b.Platform,
	}
}

// processStatus is what the status page asks.
type processStatus struct{ p *process }

var _ server.Source = (*processStatus)(nil)

// Snapshot reads the pipelines, the metrics and the log.
func (s *processStatus) Snapshot() server.Snapshot {
	now, m := s.p.active.Load(), readMetrics(s.p.registry)
	snap := server.Snapshot{Configured: now.since, Store: storeNow(now.config, m), Events: s.p.events.latest()}
	for _, r := range now.pipelines {
		snap.Pipelines = append(snap.Pipelines, pipelineNow(r.topic, r.Lanes(), m))
	}
	return snap
}

// Settings are those of the configuration in force.
func (s *processStatus) Settings() (all []server.Setting) {
	for _, e := range s.p.config().Settings() {
		all = append(all, server.Setting{Name: e.Path, Value: e.Value, Default: e.Default})
	}
	return all
}

// LookUp is `kdedup id lookup` in a process that runs.
func (s *processStatus) LookUp(ctx context.Context, topic string, id []byte) (server.Finding, error) {
	if waiting := s.p.starting.Load(); waiting != nil {
		return server.Finding{}, fmt.Errorf("kdedup has not started yet: %w", waiting.why)
	}
	c := s.p.config()
	task := &idTask{config: c, id: dedup.NewID(id), store: s.p.store, admin: s.p.admin}
	var err error
	if task.topic, err = chooseTopic(c.Topics, topic); err != nil {
		return server.Finding{}, err
	}
	task.scope = scopeOf(task.topic, "")
	found, err := task.lookup(ctx)
	if err != nil {
		return server.Finding{}, err
	}
	found.Forwarded = server.Cleaner(c.Secrets())(found.Forwarded)
	return server.Finding{Rows: found.rows(), JSON: found}, nil
}

func pipelineNow(t config.Topic, lanes []pipeline.LaneState, m metrics) server.Pipeline {
	now := server.Pipeline{
		Input: t.Input, Output: t.Output, ConsumerGroup: t.ConsumerGroup, Delivery: t.Delivery, Mode: t.Mode,
		Failures: uint64(m.value("kdedup_lane_failures_total", "topic", t.Input)),
	}
	count := func(to *[]server.Count, name, family, label string) {
		*to = append(*to, server.Count{Name: name, Total: m.value(family, label, name, "topic", t.Input)})
	}
	for _, o := range pipeline.Outcomes() {
		count(&now.Outcomes, o.String(), "kdedup_records_total", "outcome")
	}
	for _, v := range dedup.Verdicts() {
		count(&now.Verdicts, v.String(), "kdedup_verdicts_total", "verdict")
	}
	for _, result := range []string{"committed", "aborted", "failed"} {
		count(&now.Batches, result, "kdedup_batches_total", "result")
	}
	for _, l := range lanes {
		now.Lanes = append(now.Lanes, laneNow(t.Input, l, m))
		now.Partitions = append(now.Partitions, partitionsNow(l)...)
	}
	sortPartitions(now.Partitions)
	return now
}

func laneNow(input string, l pipeline.LaneState, m metrics) server.Lane {
	number := strconv.Itoa(l.Lane)
	lane := server.Lane{
		Lane: l.Lane, State: laneState(l, m.value("kdedup_store_blocked", "lane", number, "topic", input) > 0),
		InHand:     int(m.value("kdedup_records_in_flight", "lane", number, "topic", input)),
		Partitions: len(l.Assigned), Failures: l.Failures,
	}
	if l.Failure.Err != nil {
		lane.Failure = &server.Failure{Text: cut(l.Failure.Err.Error()), Hint: l.Failure.Hint, At: l.Failure.At}
	}
	return lane
}

func laneState(l pipeline.LaneState, blocked bool) string {
	switch {
	case l.Stopped:
		return server.LaneStopped
	case blocked:
		return server.LaneBlocked
	case l.Joined && !l.Failing:
		return server.LaneRunning
	case l.Failures > 0:
		return server.LaneFailing
	default:
		return server.LaneJoining
	}
}
