// Package torture kills the processes of any deduplicator while they work, and tells what became of
// the messages. It is how kdedup compares itself with others: nothing here knows of kdedup.
//
// A run starts some processes of one command, fills a topic, kills the processes with SIGKILL at
// records that a seed decides, starts them again, and reads the clean topic once it stands still.
package torture

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"golang.org/x/sync/errgroup"

	"github.com/kdedup/kdedup/lab/workload"
)

// Plan is what to do to which command.
type Plan struct {
	Records    workload.Spec // its partitions are those of both topics
	Connection []kgo.Opt     // at least where the brokers are
	// CleanConnection is that of the cluster which has the clean topic. Nil: it is the same one.
	CleanConnection []kgo.Opt
	Input           string // both topics are made, or are there and empty
	Clean           string
	// Command is started Processes times. In its arguments and in the environment, {process} and
	// TORTURE_PROCESS are the number of the process, from 0 on.
	Command   []string
	Processes int
	Kills     int
	During    time.Duration // of the production, where it does not wait for the command
	// Patience is how long the clean topic must stand still before it is read, once the command's
	// consumer group has read everything.
	Patience time.Duration
	Seed     uint64
	// Step is told of what happens, from several goroutines.
	Step func(format string, args ...any)
}

// Report is what became of the messages.
type Report struct {
	Command   []string       `json:"command"`
	Records   int            `json:"records"`  // that were produced
	Messages  int            `json:"messages"` // of which they are
	Processes int            `json:"processes"`
	Kills     int            `json:"kills"`
	AtRest    int            `json:"kills_at_rest"`       // while the command did not work
	Ended     int            `json:"ended_by_themselves"` // processes, which were started again
	Seed      uint64         `json:"seed"`
	Seconds   float64        `json:"seconds"`
	Clean     workload.Found `json:"clean"`
}

// Validate returns an error if there are too few records for so many kills.
func (p Plan) Validate() error {
	if fewest := fewestInTurn * (p.Kills + 1); p.Records.Records < fewest {
		return fmt.Errorf("%d kills need at least %d records, got %d", p.Kills, fewest,
			p.Records.Records)
	}
	return p.Records.Validate()
}

// Run returns an error if the command cannot be tortured. Whether it failed is in the report.
func Run(ctx context.Context, p Plan) (Report, error) {
	report := Report{Command: p.Command, Records: p.Records.Records, Processes: p.Processes,
		Seed: p.Seed}
	if err := p.Validate(); err != nil {
		return report, err
	}
	if p.CleanConnection == nil {
		p.CleanConnection = p.Connection
	}
	var at clusters
	for _, one := range []struct {
		connection []kgo.Opt
		topic      string
		admin      **kadm.Client
	}{{p.Connection, p.Input, &at.input}, {p.CleanConnection, p.Clean, &at.clean}} {
		client, err := kgo.NewClient(one.connection...)
		if err != nil {
			return report, fmt.Errorf("kafka: %w", err)
		}
		defer client.Close()
		*one.admin = kadm.NewClient(client)
		if err := p.emptyTopic(ctx, *one.admin, one.topic); err != nil {
			return report, err
		}
	}
	begun := time.Now()
	err := p.work(ctx, at, &report)
	report.Seconds = time.Since(begun).Seconds()
	if err != nil {
		return report, err
	}
	p.Step("reading %s", p.Clean)
	report.Clean, err = p.Records.Check(ctx, p.CleanConnection, p.Clean, report.Messages)
	return report, err
}

// clusters are where the two topics are.
type clusters struct{ input, clean *kadm.Client }

// emptyTopic makes a topic, or takes one that is empty and has as many partitions.
func (p Plan) emptyTopic(ctx context.Context, admin *kadm.Client, topic string) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	err := workload.MakeTopic(ctx, admin, topic, p.Records.Partitions, nil)
	if err == nil || !errors.Is(err, kerr.TopicAlreadyExists) {
		return err
	}
	sizes, err := ends(ctx, admin, topic)
	switch {
	case err != nil:
		return err
	case len(sizes) != p.Records.Partitions:
		return fmt.Errorf("topic %s has %d partitions, want %d: name a topic that does not exist",
			topic, len(sizes), p.Records.Partitions)
	case !isEmpty(sizes):
		return fmt.Errorf("topic %s is not empty: name one that does not exist", topic)
	}
	return nil
}

func isEmpty(sizes map[int32]int64) bool {
	for _, size := range sizes {
		if size > 0 {
			return false
		}
	}
	return true
}

// work returns when all records are produced and the clean topic stands still. The processes end
// with it.
func (p Plan) work(ctx context.Context, at clusters, report *Report) error {
	working, stop := context.WithCancel(ctx)
	defer stop()
	group, working := errgroup.WithContext(working)
	workers := make([]*worker, p.Processes)
	for i := range workers {
		workers[i] = newWorker(i, p.Command, p.Step)
		group.Go(func() error { return workers[i].run(working) })
	}
	group.Go(func() error {
		defer stop()
		turns := newTurns(p, at.clean, workers)
		messages, err := p.Records.Fill(working, p.Connection, p.Input, turns.before)
		report.Messages, report.AtRest = messages, turns.atRest
		if err != nil {
			return err
		}
		p.Step("all is produced; waiting until %s stands still for %v", p.Clean, p.Patience)
		return p.waitForQuiet(working, at)
	})
	err := group.Wait()
	for _, w := range workers {
		report.Kills += w.killed
		report.Ended += w.ended
	}
	if errors.Is(err, context.Canceled) && ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}
