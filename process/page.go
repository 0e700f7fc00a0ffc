package process

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/kdedup/kdedup/config"
	"github.com/kdedup/kdedup/connect"
	"github.com/kdedup/kdedup/connect/kafka"
	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/dedup/claimmetrics"
	"github.com/kdedup/kdedup/internal/certs"
	"github.com/kdedup/kdedup/pipeline"
	"github.com/kdedup/kdedup/process/build"
	"github.com/kdedup/kdedup/process/lookup"
	"github.com/kdedup/kdedup/process/server"
)

// started is when this process began.
var started = time.Now().UTC().Truncate(time.Millisecond)

// serverOptions give the server what it shows. The pipelines and the store may come later.
func (p *Process) serverOptions() server.Options {
	c := p.Config()
	return server.Options{
		Listen: c.Server.Listen, Hosts: c.Server.Hosts, Lookup: c.Server.Lookup,
		Pprof: c.Server.Pprof,
		Auth: server.Auth{Username: c.Server.Auth.Username,
			Password: c.Server.Auth.Password.Reveal()},
		TLS: certs.ServerFiles{CertFile: c.Server.TLS.CertFile, KeyFile: c.Server.TLS.KeyFile,
			ClientCAFile: c.Server.TLS.ClientCAFile},
		Gatherer: p.summed, Checks: p.checks, Source: &processStatus{p}, Letters: processLetters{p},
		About:   about(c),
		Secrets: c.Secrets(), Logger: p.log,
	}
}

// checks are what /readyz asks of the pipelines that run now.
func (p *Process) checks() []server.Check {
	up := p.running.Load()
	if up == nil {
		return p.starting.Load().checks()
	}
	now := p.active.Load()
	checks := append(up.clusterChecks(), server.Check{Name: server.StoreCheck, Func: func(
		ctx context.Context,
	) error {
		if err := connect.CheckReady(up.store); err != nil || len(now.config.Topics) == 0 {
			return err
		}
		scope := connect.ScopeOf(now.config.Topics[0], "")
		if _, err := up.store.Lookup(ctx, scope, "readiness probe"); err != nil {
			return err
		}
		return p.families.claims.Refusal()
	}})
	if p.serves() {
		checks = append(checks, p.apiCheck())
	}
	if now.config.SchemaRegistry.HasRegistry() {
		checks = append(checks, server.Check{Name: "schema registry",
			Func: func(ctx context.Context) error { return up.schemas.Ready(ctx) }})
	}
	for _, r := range now.pipelines {
		if r.over() && r.lostInput() {
			continue // the next look takes it away
		}
		checks = append(checks, server.Check{
			Name: "topic " + r.topic.Input,
			Func: func(context.Context) error { return r.Ready() }, Notes: r.Held,
		})
	}
	for input, reason := range now.refused {
		checks = append(checks, server.Check{Name: "topic " + input,
			Func: func(context.Context) error { return reason }})
	}
	return checks
}

func about(c config.Config) server.About {
	b := build.This()
	return server.About{
		Instance: c.Instance, Version: b.Version, Revision: b.Short(), Started: started, Go: b.Go,
		Platform: b.Platform,
	}
}

// processStatus is what the status page asks.
type processStatus struct{ p *Process }

var _ server.Source = (*processStatus)(nil)

// Snapshot asks the pipelines, the store and the log.
func (s *processStatus) Snapshot() server.Snapshot {
	now := s.p.active.Load()
	claims := make(map[string]claimmetrics.Totals) // by input
	for _, t := range now.config.Topics {
		claims[t.Input] = s.p.families.claims.Totals(t.Input)
	}
	snap := server.Snapshot{Configured: now.since, Store: s.p.storeNow(now.config, claims),
		Clusters: s.p.clustersNow(now.config), Events: s.p.events.latest()}
	if s.p.serves() {
		snap.API = apiNow(now.file, s.p.beside.metrics.Totals(), s.p.beside.url(),
			s.p.beside.waiting.Load())
	}
	for _, r := range now.pipelines {
		its := claims[r.topic.Input]
		snap.Pipelines = append(snap.Pipelines,
			s.p.pipelineNow(r, slices.Concat(its.Blocked, its.Unresolved)))
	}
	return snap
}

// Settings are those of the configuration in force.
func (s *processStatus) Settings() []server.Setting { return settingsOf(s.p.Config()) }

func settingsOf(c config.Config) (all []server.Setting) {
	for _, e := range c.Settings() {
		all = append(all, server.Setting{Name: e.Path, Value: e.Value, Default: e.Default})
	}
	return all
}

// LookUp is `kdedup id lookup` in a process that runs.
func (s *processStatus) LookUp(
	ctx context.Context, topic string, id []byte,
) (server.Finding, error) {
	task, err := s.question(topic, id)
	if err != nil {
		return server.Finding{}, err
	}
	found, err := task.Ask(ctx)
	if err != nil {
		return server.Finding{}, err
	}
	found.Forwarded = server.Cleaner(s.p.Config().Secrets())(found.Forwarded)
	return server.Finding{Rows: found.Rows(), JSON: found}, nil
}

// Change is `kdedup id release` and `claim` in a process that runs.
func (s *processStatus) Change(
	ctx context.Context, change server.Change, topic string, id []byte,
) (said string, err error) {
	task, err := s.question(topic, id)
	if err != nil {
		return "", err
	}
	if change == server.Release {
		said, err = task.Release(ctx)
	} else {
		said, err = task.Claim(ctx)
	}
	if err == nil {
		s.p.log.Info("an ID was changed by hand", "change", change, "topic", task.Topic.Input,
			"said", said)
	}
	return said, err
}

// question is about an ID of an input.
func (s *processStatus) question(topic string, id []byte) (*lookup.Question, error) {
	running, err := s.p.whenRunning()
	if err != nil {
		return nil, err
	}
	c := s.p.Config()
	if keepsOnly(c) {
		return nil, errors.New("this process keeps claims and has no topics: ask one that runs the " +
			"pipelines, or run kdedup id with the configuration")
	}
	task := &lookup.Question{Store: running.store,
		Clusters: func(context.Context) (kafka.Clusters, error) { return running.clusters, nil }}
	if task.Topic, err = connect.FindTopic(c.Topics, topic); err != nil {
		return nil, fmt.Errorf("the topic %w", err)
	}
	extractor, err := connect.ExtractorOf(task.Topic, nil)
	if err != nil {
		return nil, err
	}
	task.ID, task.Scope = extractor.Of(id), connect.ScopeOf(task.Topic, extractor.String())
	return task, nil
}

// pipelineNow gets the lanes that wait for the store or for the schema registry.
func (p *Process) pipelineNow(r *pipelineRun, blocked []string) server.Pipeline {
	t, totals := r.topic, p.families.pipeline.Totals(r.topic.Input)
	now := server.Pipeline{
		Input: t.Input, Output: t.Output, ConsumerGroup: t.ConsumerGroup,
		Delivery: string(t.Delivery), Mode: string(t.Mode),
		Failures: uint64(totals.Failures),
		Outcomes: counts(pipeline.Outcomes(), totals.Outcomes),
		Verdicts: counts(dedup.Verdicts(), totals.Verdicts),
		Batches:  counts(pipeline.Results(), totals.Batches),
		TTL:      t.TTL, Undeliverable: totals.Refused,
		Dropped: droppedNow(t, r.DroppedCopies()),
	}
	for _, l := range r.Lanes() {
		number := strconv.Itoa(l.Lane)
		lane := laneNow(l, slices.Contains(blocked, number))
		lane.InHand = int(totals.InHand[number])
		now.Lanes = append(now.Lanes, lane)
		now.Partitions = append(now.Partitions, partitionsNow(l)...)
	}
	sortPartitions(now.Partitions)
	return now
}

// counts puts totals in the order in which they are shown.
func counts[Name any](order []Name, totals map[string]float64) (all []server.Count) {
	for _, o := range order {
		name := fmt.Sprint(o)
		all = append(all, server.Count{Name: name, Total: totals[name]})
	}
	return all
}

// droppedNow names the places. A claim does not tell the name of the topic that shares the scope.
func droppedNow(t config.Topic, copies []pipeline.DroppedCopy) (all []server.DroppedCopy) {
	input := t.Input
	for _, c := range copies {
		owner := fmt.Sprintf("%s[%d]@%d", input, c.Owner.Partition, c.Owner.Offset)
		switch {
		case c.Owner == lookup.ManualOwner:
			owner = "claimed by hand"
		case c.Elsewhere:
			owner = fmt.Sprintf("[%d]@%d of another topic", c.Owner.Partition, c.Owner.Offset)
		}
		all = append(all, server.DroppedCopy{
			At: c.At, ID: []byte(c.ID), Owner: owner, ClaimedAt: c.ClaimedAt, Conflict: c.Conflict,
			Differs: c.Differs, Became: becameOf(t, c.Became),
			Place: fmt.Sprintf("%s[%d]@%d", input, c.Partition, c.Offset),
		})
	}
	return all
}

// becameOf is where a copy is now.
func becameOf(t config.Topic, o pipeline.Outcome) string {
	switch {
	case o == pipeline.DeadLettered:
		return server.BecameLetter
	case t.DuplicatesTopic != "":
		return server.BecameDuplicate
	}
	return server.BecameNothing
}

func laneNow(l pipeline.LaneState, blocked bool) server.Lane {
	lane := server.Lane{Lane: l.Lane, State: laneState(l, blocked), Partitions: len(l.Assigned),
		Failures: l.Failures}
	if l.Failure.Err != nil {
		lane.Failure = &server.Failure{Text: cut(l.Failure.Err.Error()), Hint: l.Failure.Hint,
			At: l.Failure.At}
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

func partitionsNow(l pipeline.LaneState) []server.Partition {
	var all []server.Partition
	for _, a := range l.Assigned {
		p := server.Partition{Partition: a.Partition, Lane: l.Lane, DoneTo: a.Fence, Lag: a.Lag,
			Hidden: a.Hidden}
		if a.Held != nil {
			p.Held = cut(a.Held.String())
		}
		all = append(all, p)
	}
	return all
}

func sortPartitions(all []server.Partition) {
	slices.SortFunc(all, func(a, b server.Partition) int {
		return cmp.Compare(a.Partition, b.Partition)
	})
}

// storeNow adds up over the topics what was counted of each input.
func (p *Process) storeNow(c config.Config, claims map[string]claimmetrics.Totals) server.Store {
	now := server.Store{Type: c.Store.Type, Blocked: []string{}}
	results, again := make(map[string]float64), 0.0
	for _, t := range c.Topics {
		totals := claims[t.Input]
		for result, n := range totals.Claims {
			results[result] += n
		}
		again += totals.Ambiguous
		now.Batches = sum(now.Batches, server.Durations(totals.Batches))
		for _, lane := range totals.Blocked {
			now.Blocked = append(now.Blocked, t.Input+" lane "+lane)
		}
	}
	now.Claims = counts(claimmetrics.Results(), results)
	if r := p.running.Load(); r != nil {
		for _, fact := range dedup.FactsOf(r.store) {
			now.Facts = append(now.Facts, server.Fact(fact))
		}
		now.Keepers = keepersNow(connect.LogStates(r.store))
	}
	now.Facts = append(now.Facts, server.Fact{Name: "claims_repeated", Value: again, Unit: "count"})
	return now
}

// sum adds up two histograms; the zero value stands for none.
func sum(a, b server.Durations) server.Durations {
	if a.Count == 0 {
		return b
	}
	a.Count, a.Sum, a.Counts = a.Count+b.Count, a.Sum+b.Sum, slices.Clone(a.Counts)
	for i := range b.Counts {
		a.Counts[i] += b.Counts[i]
	}
	return a
}
