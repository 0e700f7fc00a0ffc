package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/kdedup/kdedup/cmd/kdedup/internal/wiring"
	"github.com/kdedup/kdedup/config"
	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/dedup/embedded"
	"github.com/kdedup/kdedup/internal/dryrun"
	"github.com/kdedup/kdedup/internal/kafka"
	"github.com/kdedup/kdedup/internal/logreader"
	"github.com/kdedup/kdedup/internal/offsets"
)

const offsetsHelp = `Translate the offsets that a consumer group has committed on a pipeline's input into offsets of its
clean topic, so that the consumer goes on there where it stopped. --back translates the other way.

The claim of each ID tells which record of the input stands on the clean topic. No record is left
out. Where claims have ended, the consumer reads some records again; the column AGAIN says how many
at most.

Stop the consumer first. Without --apply nothing is changed.`

func newOffsets() *cobra.Command {
	var flags offsetsFlags
	cmd := &cobra.Command{
		Use:   "offsets",
		Short: "Move a consumer group from the input to the clean topic, or back",
		Long:  offsetsHelp,
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return flags.run(cmd) },
	}
	flags.add(cmd)
	return cmd
}

type offsetsFlags struct {
	configFlags
	topic, group, toGroup string
	back, apply, yes      bool
	format                string
}

func (f *offsetsFlags) add(cmd *cobra.Command) {
	f.configFlags.add(cmd)
	f.addTopic(cmd, &f.topic, "input `TOPIC` (needed if the configuration has several)")
	flags := cmd.Flags()
	flags.StringVar(&f.group, "group", "", "consumer `GROUP` that is to be moved")
	flags.StringVar(&f.toGroup, "to-group", "",
		"`GROUP` that goes on, if it has another name than --group")
	flags.BoolVar(&f.back, "back", false, "from the clean topic to the input")
	flags.BoolVar(&f.apply, "apply", false, "commit the offsets")
	flags.BoolVarP(&f.yes, "yes", "y", false, "do not ask")
	addFormat(cmd, &f.format, formatTable, formatJSON)
}

func (f *offsetsFlags) run(cmd *cobra.Command) error {
	c, log, err := f.load(cmd)
	if err != nil {
		return err
	}
	t, err := chooseTopic(c.Topics, f.topic)
	if err != nil {
		return err
	}
	err = f.check(t)
	if err == nil && c.Kafka.Output.Apart() {
		err = fmt.Errorf("%s is on the cluster of kafka.output, where the group has offsets of "+
			"its own: offsets moves a group within one cluster. Go by time, with "+
			"kafka-consumer-groups.sh --reset-offsets --to-datetime", t.Output)
	}
	if err != nil {
		return usageError{err}
	}
	brokers, err := connectToLook(cmd.Context(), c, log, "kdedup-"+c.Instance+"-offsets")
	if err != nil {
		return err
	}
	defer brokers.client.Close()
	m := &move{look: brokers, admin: kadm.NewClient(brokers.client), from: t.Input, to: t.Output,
		group: f.group, toGroup: cmp.Or(f.toGroup, f.group)}
	if f.back {
		m.from, m.to = m.to, m.from
	}
	if err := m.ask(cmd.Context(), t); err != nil {
		return err
	}
	line := newProgress(cmd.ErrOrStderr())
	err = f.translate(cmd.Context(), c, t, m, line.show)
	line.end()
	if err != nil {
		return err
	}
	if err := m.print(cmd.OutOrStdout(), f.format); err != nil {
		return err
	}
	return f.commit(cmd, m)
}

// check refuses flags that do not fit, before any server is asked.
func (f *offsetsFlags) check(t config.Topic) error {
	switch {
	case f.group == "":
		return errors.New("say which consumer group is to be moved: --group GROUP")
	case f.group == t.ConsumerGroup || f.toGroup == t.ConsumerGroup:
		return fmt.Errorf("%s is the consumer group of the pipeline itself; --group names that of "+
			"a consumer of %s", t.ConsumerGroup, t.Input)
	case t.Mode != config.ModeEnforce || t.OnStoreOutage == config.ActionForward:
		return fmt.Errorf("the entry of %s lets copies through (mode: %s, on_store_outage: %s), so "+
			"that the claim of an ID does not tell which of its records stands on %s. Go by time, "+
			"with kafka-consumer-groups.sh --reset-offsets --to-datetime", t.Input, t.Mode,
			t.OnStoreOutage, t.Output)
	case t.Partitioner == config.PartitionerByKey:
		return fmt.Errorf("the entry of %s has partitioner: %s, so that a partition of %s has "+
			"records of several partitions of the input: no offset there stands for one of the "+
			"input. Go by time, with kafka-consumer-groups.sh --reset-offsets --to-datetime",
			t.Input, t.Partitioner, t.Output)
	case f.apply && f.format == formatJSON && !f.yes:
		return errors.New("--format json with --apply needs --yes: the question would stand in " +
			"the output")
	}
	return nil
}

// move is what is known about a group that moves from one topic to another.
type move struct {
	*look
	admin          *kadm.Client
	from, to       string // topics
	group, toGroup string
	input, clean   logreader.Log

	committed map[int32]int64 // on the topic that the group leaves
	now       map[int32]int64 // on the topic to which it goes, if it has been there
	places    map[int32]offsets.Place
}

// ask describes the clean topic before the offsets are fetched, see offsets.Options.
func (m *move) ask(ctx context.Context, t config.Topic) (err error) {
	names, err := m.topics(ctx)
	if err != nil {
		return err
	}
	if err := errors.Join(missingTopic(t.Input, names), missingTopic(t.Output, names)); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, wiring.StartTimeout)
	defer cancel()
	if m.clean, err = logreader.Describe(ctx, m.client, t.Output, logreader.Bounds{}); err != nil {
		return err
	}
	if m.input, err = logreader.Describe(ctx, m.client, t.Input, logreader.Bounds{}); err != nil {
		return err
	}
	if m.committed, err = m.offsetsOf(ctx, m.group, m.from); err != nil {
		return err
	}
	if len(m.committed) == 0 {
		return fmt.Errorf("consumer group %s has committed no offset of %s; the groups that have "+
			"are listed by kafka-consumer-groups.sh --list", m.group, m.from)
	}
	m.now, err = m.offsetsOf(ctx, m.toGroup, m.to)
	return err
}

func (m *move) offsetsOf(ctx context.Context, group, topic string) (map[int32]int64, error) {
	answers, err := m.admin.FetchOffsetsForTopics(ctx, group, topic)
	if err == nil {
		err = answers.Error()
	}
	if err != nil {
		return nil, fmt.Errorf("fetch the offsets of consumer group %s: %w", group, err)
	}
	committed := make(map[int32]int64)
	for p, o := range answers[topic] {
		if o.At >= 0 {
			committed[p] = o.At
		}
	}
	return committed, nil
}

func (f *offsetsFlags) translate(
	ctx context.Context, c config.Config, t config.Topic, m *move, show func(done, total int64),
) (err error) {
	judge, closeJudge, err := openJudge(ctx, c, t, show, m.log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeJudge()) }()
	translation := offsets.Clean
	if f.back {
		translation = offsets.Input
	}
	m.places, err = translation(ctx, offsets.Options{Connection: m.options, Input: m.input,
		Clean: m.clean, Judge: judge}, m.committed)
	return err
}

// placed is one row of what is printed.
type placed struct {
	Partition int32  `json:"partition"`
	From      int64  `json:"from"`
	To        int64  `json:"to"`
	Now       *int64 `json:"now"`
	Again     int64  `json:"again"`
}

func (m *move) rows() (rows []placed) {
	for _, p := range slices.Sorted(maps.Keys(m.places)) {
		row := placed{Partition: p, From: m.committed[p], To: m.places[p].Offset,
			Again: m.places[p].Again}
		if now, ok := m.now[p]; ok {
			row.Now = &now
		}
		rows = append(rows, row)
	}
	return rows
}

func (m *move) print(out io.Writer, format string) error {
	if format == formatJSON {
		return json.NewEncoder(out).Encode(m.rows())
	}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(table, "PARTITION\t%s\t%s\tCOMMITTED THERE\tAGAIN\t\n", m.from, m.to)
	for _, row := range m.rows() {
		now := "–"
		if row.Now != nil {
			now = fmt.Sprint(*row.Now)
		}
		fmt.Fprintf(table, "%d\t%d\t%d\t%s\t%d\t\n", row.Partition, row.From, row.To, now,
			row.Again)
	}
	return table.Flush()
}

// commit refuses a group that works: its members would commit over the offsets, or these over
// theirs.
func (f *offsetsFlags) commit(cmd *cobra.Command, m *move) error {
	ctx := cmd.Context()
	for _, group := range slices.Compact([]string{m.group, m.toGroup}) {
		state, err := kafka.GroupState(ctx, m.client, group)
		if err != nil {
			return err
		}
		if state != "" {
			err := fmt.Errorf("consumer group %s is active (%s): stop its members, so that its "+
				"offsets stand still", group, state)
			if f.apply {
				return err
			}
			m.log.Warn("the offsets go on", "reason", err)
		}
	}
	if !f.apply {
		fmt.Fprintln(cmd.ErrOrStderr(), "nothing was changed; --apply commits these offsets")
		return nil
	}
	if !f.yes && !agreed(cmd, fmt.Sprintf("Commit them for consumer group %s?", m.toGroup)) {
		return errors.New("nothing was changed")
	}
	still, err := m.offsetsOf(ctx, m.group, m.from)
	if err != nil {
		return err
	}
	if !maps.Equal(still, m.committed) {
		return fmt.Errorf("consumer group %s has committed other offsets of %s meanwhile: nothing "+
			"was changed; run it again", m.group, m.from)
	}
	return m.apply(ctx, cmd.OutOrStdout())
}

func (m *move) apply(ctx context.Context, out io.Writer) error {
	commit := make(kadm.Offsets)
	for p, place := range m.places {
		commit.AddOffset(m.to, p, place.Offset, -1)
	}
	answers, err := m.admin.CommitOffsets(ctx, m.toGroup, commit)
	if err == nil {
		err = answers.Error()
	}
	if err != nil {
		return fmt.Errorf("commit offsets of consumer group %s: %w", m.toGroup, err)
	}
	fmt.Fprintf(out, "committed for %d partitions: %s goes on on %s\n", len(commit[m.to]),
		m.toGroup, m.to)
	return nil
}

// openJudge opens the store that tells who owns the IDs of the pipeline. A claim log gets an index
// of its own beside that of the process, which may run.
func openJudge(
	ctx context.Context, c config.Config, t config.Topic, show func(done, total int64),
	log *slog.Logger,
) (judge offsets.Judge, closeJudge func() error, err error) {
	var opened []func() error
	closeJudge = func() error {
		var errs []error
		for _, undo := range slices.Backward(opened) {
			errs = append(errs, undo())
		}
		return errors.Join(errs...)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, closeJudge())
		}
	}()
	removeIndex, err := ownIndex(&c.Store)
	if err != nil {
		return nil, nil, err
	}
	opened = append(opened, removeIndex)
	schemas, err := wiring.Schemas(c, log)
	if err != nil {
		return nil, nil, err
	}
	opened = append(opened, func() error { schemas.Close(); return nil })
	extractor, err := wiring.ExtractorOf(t, schemas)
	if err != nil {
		return nil, nil, err
	}
	scope := wiring.ScopeOf(t, extractor.String())
	store, err := openClaims(ctx, c, scope, nil, show, log)
	if errors.Is(err, embedded.ErrUsed) {
		err = fmt.Errorf("%w. Stop the process for as long as this takes", err)
	}
	if err != nil {
		return nil, nil, err
	}
	opened = append(opened, store.Close)
	return dedup.New(scope, dryrun.Claimer{Store: store},
		dedup.Options{Extractor: extractor, Logger: log}), closeJudge, nil
}
