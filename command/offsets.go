package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"github.com/kdedup/kdedup/command/offsets"
	"github.com/kdedup/kdedup/config"
	"github.com/kdedup/kdedup/connect"
	"github.com/kdedup/kdedup/connect/kafka"
	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/dedup/dryrun"
	"github.com/kdedup/kdedup/dedup/embedded"
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

func (f *offsetsFlags) run(cmd *cobra.Command) (err error) {
	c, log, err := f.load(cmd)
	if err != nil {
		return err
	}
	t, err := chooseTopic(c.Topics, f.topic)
	if err != nil {
		return err
	}
	if err := f.check(t); err != nil {
		return usageError{err}
	}
	servers := connect.NewServers(c, log)
	defer func() { err = errors.Join(err, servers.Close()) }()
	input, output, err := connectToLook(cmd.Context(), servers, "offsets", log)
	if err != nil {
		return err
	}
	m := &move{inputs: input, outputs: output, log: log,
		clusters: kafka.Clusters{Input: input.client, Output: output.client},
		from:     side{input, t.Input, f.group},
		to:       side{output, t.Output, cmp.Or(f.toGroup, f.group)}, back: f.back}
	if f.back {
		m.from.look, m.to.look = m.to.look, m.from.look
		m.from.topic, m.to.topic = m.to.topic, m.from.topic
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
	if !f.back && t.Delivery == config.DeliveryExactlyOnce {
		fmt.Fprintf(cmd.ErrOrStderr(), "%s must read %s %s\n", m.to.group, m.to.topic, readerNeeds)
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
	m.places, err = translation(ctx, offsets.Options{Connection: m.inputs.options,
		CleanConnection: m.outputs.options, Input: m.input, Clean: m.clean, Judge: judge,
		Originals: true, Handled: m.handled}, m.committed)
	return err
}

// commit refuses a group that works: its members would commit over the offsets, or these over
// theirs.
func (f *offsetsFlags) commit(cmd *cobra.Command, m *move) error {
	ctx := cmd.Context()
	for _, s := range []side{m.from, m.to} {
		state, err := kafka.GroupState(ctx, s.client, s.group)
		if err != nil {
			return err
		}
		if state != "" {
			err := fmt.Errorf("consumer group %s is active (%s)%s: stop its members, so that its "+
				"offsets stand still", s.group, state, m.place(s))
			if f.apply {
				return err
			}
			m.log.Warn("the offsets go on", "reason", err)
		}
		if m.from.look == m.to.look && m.from.group == m.to.group {
			break // one group
		}
	}
	if !f.apply {
		fmt.Fprintln(cmd.ErrOrStderr(), "nothing was changed; --apply commits these offsets")
		return nil
	}
	if !f.yes && !agreed(cmd, fmt.Sprintf("Commit them for consumer group %s?", m.to.group)) {
		return errors.New("nothing was changed")
	}
	still, err := m.offsets(ctx, m.from)
	if err != nil {
		return err
	}
	if !maps.Equal(still, m.committed) {
		return fmt.Errorf("consumer group %s has committed other offsets of %s meanwhile: nothing "+
			"was changed; run it again", m.from.group, m.from.topic)
	}
	return m.apply(ctx, cmd.OutOrStdout())
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
	servers := connect.NewServers(c, log)
	opened = append(opened, servers.Close)
	e, err := servers.Entry(t)
	if err != nil {
		return nil, nil, err
	}
	store, err := openClaims(ctx, c, servers, &e, nil, show)
	if errors.Is(err, embedded.ErrUsed) {
		err = fmt.Errorf("%w. Stop the process for as long as this takes", err)
	}
	if err != nil {
		return nil, nil, err
	}
	return dedup.New(e.ClaimScope(), dryrun.Claimer{Store: store},
		dedup.Options{Extractor: e.Extractor, Logger: log}), closeJudge, nil
}
