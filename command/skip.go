package command

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/config"
	"github.com/kdedup/kdedup/connect"
	"github.com/kdedup/kdedup/fence"
)

const skipHelp = `Skip the record at which a partition is held.

The lanes go on behind the record within a minute, or when they start. Its message ID stays claimed:
copies of it are duplicates. To let one through later, release the ID with kdedup id release.`

// skipFlags say which record is meant, and what is to become of it.
type skipFlags struct {
	configFlags
	topic            string
	partition        int32
	offset           int64
	drop, deadLetter bool
	yes              bool
}

func newSkip() *cobra.Command {
	var flags skipFlags
	cmd := &cobra.Command{
		Use:   "skip",
		Short: "Skip the record at which a partition is held",
		Long:  skipHelp,
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return flags.run(cmd) },
	}
	flags.add(cmd)
	flags.addTopic(cmd, &flags.topic, "input `TOPIC` (needed if the configuration has several)")
	cmd.Flags().Int32Var(&flags.partition, "partition", -1,
		"`NUMBER` of the partition that is held")
	cmd.Flags().Int64Var(&flags.offset, "offset", -1, "`OFFSET` of the record")
	cmd.Flags().BoolVar(&flags.drop, "drop", false, "the record reaches nobody")
	cmd.Flags().BoolVar(&flags.deadLetter, "dead-letter", false,
		"the record goes to dead_letter_topic")
	cmd.Flags().BoolVarP(&flags.yes, "yes", "y", false, "do not ask")
	return cmd
}

func (f *skipFlags) run(cmd *cobra.Command) (err error) {
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
	ctx, cancel := context.WithTimeout(cmd.Context(), connect.StartTimeout)
	defer cancel()
	servers := connect.NewServers(c, log, kgo.RecordPartitioner(kgo.ManualPartitioner()))
	defer func() { err = errors.Join(err, servers.Close()) }()
	clusters, err := servers.Clusters(ctx)
	if err != nil {
		return err
	}
	connection, err := servers.InputOptions(ctx, "skip")
	if err != nil {
		return err
	}
	group, client := connect.GroupAt(clusters, t)
	next, topicID, err := group.Next(ctx, client, connection, f.partition)
	if err != nil {
		return err
	}
	place := fmt.Sprintf("%s[%d]@%d", t.Input, f.partition, f.offset)
	if next.Offset != f.offset {
		return fmt.Errorf("%s is not the record at which the partition is held: the next one "+
			"that is to be handled is at offset %d", place, next.Offset)
	}
	becomes := "reaches nobody"
	if f.deadLetter {
		becomes = "goes to " + t.DeadLetterTopic
	}
	question := fmt.Sprintf("Skip %s (%d bytes of %s)? It %s.", place, len(next.Value),
		next.Timestamp.UTC().Format(time.RFC3339), becomes)
	if !f.yes && !agreed(cmd, question) {
		return errors.New("nothing was changed")
	}
	if err := group.Skip(
		ctx, client, f.partition, fence.Skip{TopicID: topicID, Offset: f.offset,
			LeaderEpoch: next.LeaderEpoch, DeadLetter: f.deadLetter},
	); err != nil {
		return err
	}
	fmt.Fprintf(cmd.OutOrStdout(), "%s %s: the lanes go on behind it within a minute\n", place,
		becomes)
	return nil
}

func (f *skipFlags) check(t config.Topic) error {
	switch {
	case f.partition < 0:
		return errors.New("--partition must be that of the record at which a partition is held; " +
			"/readyz tells it")
	case f.offset < 0:
		return errors.New(
			"--offset must be that of the record at which a partition is held; /readyz tells it")
	case f.drop == f.deadLetter:
		return errors.New("say what is to become of the record: either --drop or --dead-letter")
	case f.deadLetter && t.DeadLetterTopic == "":
		return fmt.Errorf(
			"--dead-letter: the entry of %s has no dead_letter_topic; set it, or use --drop",
			t.Input)
	}
	return nil
}
