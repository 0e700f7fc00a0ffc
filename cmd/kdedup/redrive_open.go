package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/cmd/kdedup/internal/wiring"
	"github.com/kdedup/kdedup/config"
	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/dedup/embedded"
	"github.com/kdedup/kdedup/forwarder"
	"github.com/kdedup/kdedup/internal/kafka"
	"github.com/kdedup/kdedup/internal/logreader"
	"github.com/kdedup/kdedup/internal/redrive"
	"github.com/kdedup/kdedup/pipeline"
)

// redriving is what a redrive has open.
type redriving struct {
	config   config.Config
	entry    wiring.Entry
	clusters kafka.Clusters
	store    dedup.Store // nil until it is known to be needed
	options  redrive.Options
	log      *slog.Logger

	closeSchemas func() // nil until they can be asked
}

// open asks the brokers about all that a redrive rests on, but for the store.
func (f *redriveFlags) open(
	ctx context.Context, c config.Config, t config.Topic, log *slog.Logger,
) (d *redriving, err error) {
	d = &redriving{config: c, entry: wiring.Entry{Topic: t}, log: log}
	defer func() {
		if err != nil {
			d.close()
		}
	}()
	ctx, cancel := context.WithTimeout(ctx, wiring.StartTimeout)
	defer cancel()
	input, err := kafka.NewConnector(ctx, c.Kafka, log)
	if err != nil {
		return d, err
	}
	// has the letters, what is written, and the marks
	connector, err := kafka.NewOutputConnector(ctx, c.Kafka, input, log)
	if err != nil {
		return d, err
	}
	if d.clusters, err = wiring.NewClients(input, connector, c, log); err != nil {
		return d, err
	}
	if err = d.clusters.Ping(ctx); err != nil {
		return d, err
	}
	schemas, err := wiring.Schemas(c, log)
	if err != nil {
		return d, err
	}
	d.closeSchemas = schemas.Close
	d.entry.Schemas = schemas
	if err = d.knowIDs(ctx); err != nil {
		return d, err
	}
	extractor := d.entry.Extractor
	d.options = redrive.Options{
		Connection: func() []kgo.Opt {
			return connector.AdminOptions("kdedup-"+c.Instance+"-redrive", log)
		},
		Limit: f.limit, DryRun: f.dryRun, Input: t.Input, Now: f.timestamp == timeOfSender,
		Conflicts: f.conflicts, MaxRedrives: f.maxRedrives, Scope: d.entry.ClaimScope(),
		Extractor: extractor, Passes: passes(t), Marks: marksTopic(t),
		TransactionalID: t.ConsumerGroup + "-redrive", TransactionTimeout: t.TransactionTimeout,
		BatchRecords: t.BatchRecords, BatchBytes: int(t.BatchBytes), Logger: log,
	}
	if f.into == intoInput {
		d.options.Into = redrive.Input
	}
	if !f.dryRun {
		if err = kafka.CheckTransactions(ctx, d.clusters.Output, d.options.TransactionalID,
			t.ConsumerGroup); err != nil {
			return d, fmt.Errorf("a redrive needs Kafka transactions, whatever the delivery: %w",
				err)
		}
	}
	return d, d.ask(ctx, f.letters(t))
}

// knowIDs finds out how the IDs of letters are made: if the entry's preset has changed, the scope
// knows what it stood for. The store is opened for their claims once the IDs are known.
func (d *redriving) knowIDs(ctx context.Context) (err error) {
	if d.entry.Extractor, err = wiring.ExtractorOf(d.entry.Topic, d.entry.Schemas); err != nil {
		return err
	}
	if !slices.ContainsFunc(d.entry.Before(), func(b config.Before) bool { return !b.SameIDs }) {
		return nil
	}
	return d.withStore(ctx, nil, func(store dedup.Store) error {
		return errors.Join(d.entry.Compare(ctx, store), store.Close())
	})
}

// withStore opens the store for these IDs.
func (d *redriving) withStore(
	ctx context.Context, ids map[dedup.ID]bool, use func(dedup.Store) error,
) error {
	if err := wiring.CheckMade(d.config.Store); err != nil {
		return err
	}
	store, err := wiring.OpenStoreFor(ctx, d.config,
		func(_ string, id dedup.ID) bool { return ids[id] }, d.log)
	if errors.Is(err, embedded.ErrUsed) {
		return fmt.Errorf("%w. To redrive, stop the process that runs, and start it again "+
			"afterwards", err)
	}
	if err != nil {
		return err
	}
	return use(store)
}

// passes tells what the pipeline lets through.
func passes(t config.Topic) func(dedup.Verdict) bool {
	policy := wiring.PolicyOf(t)
	return func(v dedup.Verdict) bool {
		outcome, goesOn := policy.Outcome(v)
		return goesOn && (outcome == pipeline.Forwarded || outcome == pipeline.PassedThrough)
	}
}

// ask reads the letters before the fences, which are committed with them.
func (d *redriving) ask(ctx context.Context, letters string) (err error) {
	t, o := d.entry.Topic, &d.options
	if o.Letters, err = logreader.Describe(ctx, d.clusters.Output, letters,
		logreader.Bounds{}); err != nil {
		return err
	}
	if o.InputID, err = kafka.TopicID(ctx, d.clusters.Input, t.Input); err != nil {
		return err
	}
	group, client := wiring.GroupAt(d.clusters, t)
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
	wiring.Compress(t, &o.Target.Topics)
	if target.MaxBytes > 0 {
		o.Target.MaxBytes[name] = target.MaxBytes
	}
	return nil
}

// prepare opens the store, and makes the topic of the marks.
func (d *redriving) prepare(ctx context.Context, found redrive.Found, says io.Writer) error {
	if err := d.openStore(ctx, found); err != nil {
		return err
	}
	if d.options.DryRun {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, wiring.StartTimeout)
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
				Required: true}}}, false,
			func(line string) { fmt.Fprintln(says, line) })
	case !marks.Compacted || marks.Retention > 0:
		return fmt.Errorf("topic %s must have cleanup.policy=compact: it tells what was redriven, "+
			"and what is deleted there would be redriven again", topic)
	}
	return nil
}

// openStore opens the store for the IDs that were found, and refuses one that lacks the claims of
// what the pipeline has handled.
func (d *redriving) openStore(ctx context.Context, found redrive.Found) error {
	opening, cancel := context.WithTimeout(ctx, wiring.StartTimeout)
	defer cancel()
	if err := d.withStore(opening, found.IDs, func(store dedup.Store) error {
		d.store, d.options.Store = store, store
		return d.entry.Compare(opening, store)
	}); err != nil {
		return err
	}
	store, c, e := d.store, d.config, &d.entry
	knowledge, err := wiring.NewKnowledge(opening, d.clusters.Input, store, c.Store)
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
	return wiring.Await(ctx, store, e.ClaimScope())
}

func (d *redriving) close() {
	if d.closeSchemas != nil {
		d.closeSchemas()
	}
	if d.store != nil {
		if err := d.store.Close(); err != nil {
			d.log.Warn("the store was not closed", "error", err)
		}
	}
	d.clusters.Close()
}
