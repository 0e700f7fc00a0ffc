// Package redriving opens what a redrive of a configuration's entry rests on: brokers, fences,
// claims, the topic of the marks. The command and the status page redrive by it.
package redriving

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/config"
	"github.com/kdedup/kdedup/connect"
	"github.com/kdedup/kdedup/connect/kafka"
	"github.com/kdedup/kdedup/connect/logreader"
	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/dedup/embedded"
	"github.com/kdedup/kdedup/forwarder"
	"github.com/kdedup/kdedup/pipeline"
	"github.com/kdedup/kdedup/process/redrive"
)

// Request says what is redriven.
type Request struct {
	Topic       config.Topic
	Duplicates  bool // those on duplicates_topic, in place of the dead letters
	Into        redrive.Into
	Select      redrive.Selection
	Limit       int64 // of letters; 0: none
	Now         bool  // records get the present time
	Conflicts   bool  // into Clean: also those whose ID has an owner with other content
	MaxRedrives int
	DryRun      bool
	Progress    func(done, total int64) // may be nil
}

// Letters is the topic that is redriven; empty if the entry has none.
func (r Request) Letters() string {
	if r.Duplicates {
		return r.Topic.DuplicatesTopic
	}
	return r.Topic.DeadLetterTopic
}

// ErrApart refuses what would take a transaction over two clusters.
var ErrApart = errors.New("the letters, and the marks of those that were redriven, are on the " +
	"cluster of kafka.output, and one Kafka transaction cannot span two clusters, so that they go " +
	"to the clean topic alone")

// Check refuses a request that no server has to be asked about.
func (r Request) Check(c config.Config) error {
	t := r.Topic
	switch {
	case r.Letters() == "" && r.Duplicates:
		return fmt.Errorf("the entry of %s has no duplicates_topic, so dropped copies are counted "+
			"and kept nowhere: set it, and run kdedup setup", t.Input)
	case r.Letters() == "":
		return fmt.Errorf("the entry of %s has no dead_letter_topic", t.Input)
	case marksTopic(t) == t.FenceTopic:
		return fmt.Errorf("redrive notes on topic %s what it has redriven, and that is the "+
			"fence_topic: give this entry another one", marksTopic(t))
	case r.Into == redrive.Input && c.Kafka.Output.Apart():
		return ErrApart
	}
	return nil
}

// Reasons are those of dead letters, or the verdicts about duplicates. missing_id stands for all
// that begin so.
func Reasons(duplicates bool) []string {
	duplicate, conflict := dedup.VerdictDuplicate.String(), dedup.VerdictConflict.String()
	if duplicates {
		return []string{duplicate, conflict}
	}
	known := []string{redrive.MissingID}
	for _, reason := range dedup.MissingReasons() {
		known = append(known, redrive.MissingID+"_"+reason.String())
	}
	known = append(known, conflict, dedup.VerdictTombstone.String(), forwarder.ReasonSkipped)
	return append(known, forwarder.Reasons()...)
}

// marksTopic tells which letters were redriven.
func marksTopic(t config.Topic) string { return t.ConsumerGroup + ".redrive" }

// Marks is the topic that tells which letters were redriven.
func (r Request) Marks() string { return marksTopic(r.Topic) }

// Opener opens the store for the claims of these IDs, and says how to close it.
type Opener func(ctx context.Context, ids map[dedup.ID]bool) (dedup.Store, func() error, error)

// Task is what a redrive has open.
type Task struct {
	request  Request
	config   config.Config
	entry    connect.Entry
	clusters kafka.Clusters
	opener   Opener
	options  redrive.Options
	log      *slog.Logger

	closers []func() error
}

// Open asks the brokers about all that a redrive rests on, but for the store.
func Open(
	ctx context.Context, c config.Config, r Request, opener Opener, log *slog.Logger,
) (d *Task, err error) {
	t := r.Topic
	d = &Task{request: r, config: c, entry: connect.Entry{Topic: t}, opener: opener, log: log}
	defer func() {
		if err != nil {
			d.Close()
		}
	}()
	ctx, cancel := context.WithTimeout(ctx, connect.StartTimeout)
	defer cancel()
	servers := connect.NewServers(c, log)
	d.closers = append(d.closers, servers.Close)
	if d.clusters, err = servers.Reach(ctx); err != nil {
		return d, err
	}
	// its cluster has the letters, what is written, and the marks
	connector, err := servers.OutputConnector(ctx)
	if err != nil {
		return d, err
	}
	if d.entry, err = servers.Entry(t); err != nil {
		return d, err
	}
	if err = d.knowIDs(ctx); err != nil {
		return d, err
	}
	extractor := d.entry.Extractor
	d.options = redrive.Options{
		Connection: func() []kgo.Opt {
			return connector.AdminOptions("kdedup-"+c.Instance+"-redrive", log)
		},
		Select: r.Select, Limit: r.Limit, DryRun: r.DryRun, Progress: r.Progress,
		Into: r.Into, Input: t.Input, Now: r.Now,
		Conflicts: r.Conflicts, MaxRedrives: r.MaxRedrives, Scope: d.entry.ClaimScope(),
		Extractor: extractor, Passes: Passes(t), Marks: marksTopic(t),
		TransactionalID: t.ConsumerGroup + "-redrive", TransactionTimeout: t.TransactionTimeout,
		BatchRecords: t.BatchRecords, BatchBytes: int(t.BatchBytes), Logger: log,
	}
	if !r.DryRun {
		if err = kafka.CheckTransactions(ctx, d.clusters.Output, d.options.TransactionalID,
			t.ConsumerGroup); err != nil {
			return d, fmt.Errorf("a redrive needs Kafka transactions, whatever the delivery: %w",
				err)
		}
	}
	return d, d.ask(ctx, r.Letters())
}

// knowIDs finds out how the IDs of letters are made: if the entry's preset has changed, the scope
// knows what it stood for. The store is opened for their claims once the IDs are known.
func (d *Task) knowIDs(ctx context.Context) error {
	if !slices.ContainsFunc(d.entry.Before(), func(b config.Before) bool { return !b.SameIDs }) {
		return nil
	}
	store, closeIt, err := d.opener(ctx, nil)
	if err != nil {
		return err
	}
	return errors.Join(d.entry.Compare(ctx, store), closeIt())
}

// OwnStore opens the store of the configuration, for a command.
func OwnStore(c config.Config, log *slog.Logger) Opener {
	return func(
		ctx context.Context, ids map[dedup.ID]bool,
	) (dedup.Store, func() error, error) {
		if err := connect.CheckMade(c.Store); err != nil {
			return nil, nil, err
		}
		store, err := connect.OpenStoreFor(ctx, c,
			func(_ string, id dedup.ID) bool { return ids[id] }, log)
		if errors.Is(err, embedded.ErrUsed) {
			return nil, nil, fmt.Errorf("%w. Redrive on the status page of the process that "+
				"runs, under letters; or stop it, redrive, and start it again", err)
		}
		if err != nil {
			return nil, nil, err
		}
		return store, store.Close, nil
	}
}

// Scan reads which letters are selected.
func (d *Task) Scan(ctx context.Context) (redrive.Found, error) {
	return redrive.Scan(ctx, d.options)
}

// Target is the topic that records go to.
func (d *Task) Target() string { return d.options.Target.Output }

// From is the topic that has the letters.
func (d *Task) From() string { return d.options.Letters.Topic }

// Run redrives what Scan found. The report is up to an error; nil if it did not begin.
func (d *Task) Run(
	ctx context.Context, found redrive.Found, says func(line string),
) (*redrive.Report, error) {
	if err := d.prepare(ctx, found, says); err != nil {
		return nil, err
	}
	return redrive.Run(ctx, d.options)
}

// Passes tells what the pipeline lets through to the clean topic.
func Passes(t config.Topic) func(dedup.Verdict) bool {
	policy := connect.PolicyOf(t)
	return func(v dedup.Verdict) bool {
		outcome, goesOn := policy.Outcome(v)
		return goesOn && (outcome == pipeline.Forwarded || outcome == pipeline.PassedThrough)
	}
}

// ask reads the letters before the fences, which are committed with them.
func (d *Task) ask(ctx context.Context, letters string) (err error) {
	t, o := d.entry.Topic, &d.options
	if o.Letters, err = logreader.Describe(ctx, d.clusters.Output, letters,
		logreader.Bounds{}); err != nil {
		return err
	}
	if o.InputID, err = kafka.TopicID(ctx, d.clusters.Input, t.Input); err != nil {
		return err
	}
	group, client := connect.GroupAt(d.clusters, t)
	fences, err := group.Fences(ctx, client)
	if err != nil {
		return err
	}
	o.Handled = func(owner dedup.Coordinates, claimed time.Time) bool {
		f := fences.Fences[owner.Partition]
		return !f.Foreign(fences.Input) &&
			!claimed.After(f.Settled(owner.TopicID, owner.Offset, owner.LeaderEpoch))
	}
	name := t.Output
	if o.Into == redrive.Input {
		name = t.Input
	}
	target, exists, err := kafka.TargetOf(ctx, d.clusters.Of(t, name), name)
	if err == nil && !exists {
		err = fmt.Errorf("topic %s does not exist; run: kdedup setup -c FILE", name)
	}
	if err != nil {
		return err
	}
	o.Target = redrive.Target{Partitions: target.Partitions, Retention: target.Retention,
		Topics: forwarder.Topics{Output: name, MaxBytes: map[string]int{},
			Compacted: map[string]bool{name: target.Compacted},
			ByKey:     o.Into == redrive.Clean && t.Partitioner == config.PartitionerByKey}}
	connect.Compress(t, &o.Target.Topics)
	if target.MaxBytes > 0 {
		o.Target.MaxBytes[name] = target.MaxBytes
	}
	return nil
}

// prepare opens the store, and makes the topic of the marks.
func (d *Task) prepare(ctx context.Context, found redrive.Found, says func(string)) error {
	if err := d.openStore(ctx, found); err != nil {
		return err
	}
	if d.options.DryRun {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, connect.StartTimeout)
	defer cancel()
	topic := d.options.Marks
	marks, exists, err := kafka.TargetOf(ctx, d.clusters.Output, topic)
	switch {
	case err != nil:
		return err
	case !exists:
		return kafka.SetupBeside(ctx, d.clusters, d.entry.Topic, kafka.Beside{Name: topic,
			Partitions: 1, Forwarded: true,
			Settings: []kafka.Setting{{Key: "cleanup.policy", Value: "compact",
				Required: true}}}, false, says)
	case !marks.Compacted || marks.Retention > 0:
		return fmt.Errorf("topic %s must have cleanup.policy=compact: it tells what was redriven, "+
			"and what is deleted there would be redriven again", topic)
	}
	return nil
}

// openStore opens the store for the IDs that were found, and refuses one that lacks the claims of
// what the pipeline has handled.
func (d *Task) openStore(ctx context.Context, found redrive.Found) error {
	opening, cancel := context.WithTimeout(ctx, connect.StartTimeout)
	defer cancel()
	store, closeIt, err := d.opener(opening, found.IDs)
	if err != nil {
		return err
	}
	d.closers = append(d.closers, closeIt)
	d.options.Store = store
	c, e := d.config, &d.entry
	if err := e.Compare(opening, store); err != nil {
		return err
	}
	knowledge, err := connect.NewKnowledge(opening, d.clusters.Input, store, c.Store)
	if err != nil {
		return err
	}
	if err := knowledge.Check(opening, d.clusters, e); err != nil {
		return err
	}
	if !d.options.DryRun {
		if err := store.Register(opening, e.ClaimScope()); err != nil {
			return err
		}
	}
	return connect.WaitReady(ctx, store, e.ClaimScope())
}

// Close ends what was opened, the last first.
func (d *Task) Close() {
	for _, closeIt := range slices.Backward(d.closers) {
		if err := closeIt(); err != nil {
			d.log.Warn("what a redrive had open was not closed", "error", err)
		}
	}
	d.closers = nil
}
