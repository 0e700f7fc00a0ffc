package main

import (
	"bufio"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kdedup/kdedup/cmd/kdedup/internal/lookup"
	"github.com/kdedup/kdedup/cmd/kdedup/internal/wiring"
	"github.com/kdedup/kdedup/dedup"
)

func newIDRelease() *cobra.Command {
	cmd := newIDChange("release ID", "Forget an ID: the next copy is forwarded as the first one",
		"Forget %s of %s? The next copy will be forwarded as the first one.",
		func(cmd *cobra.Command, task *lookup.Question) error {
			if err := wiring.CheckMovedAway(cmd.Context(), task.Store, task.Scope); err != nil {
				return err
			}
			answer, err := task.Store.Lookup(cmd.Context(), task.Scope, task.ID)
			if err != nil {
				return err
			}
			if answer.Outcome == dedup.Undecided { // as it is for an ID without a claim
				fmt.Fprintf(cmd.OutOrStdout(), "%s was not claimed; nothing changed\n",
					wiring.ShownID(task.ID))
				return nil
			}
			if err := task.Store.Release(cmd.Context(), task.Scope, task.ID); err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%s is free\n", wiring.ShownID(task.ID))
			return nil
		})
	cmd.Long = releaseHelp
	return cmd
}

const releaseHelp = `Forget an ID: the next copy is forwarded as the first one.

On Cassandra a release is a delete. A replica that is away, and is not repaired within the table's
gc_grace_seconds (3 h by default), can bring the old claim back. Send the message again soon after
the release: its claim takes the place of the old one for good.`

func newIDClaim() *cobra.Command {
	return newIDChange("claim ID",
		"Block an ID: every copy is a duplicate until the ttl ends, whatever its content",
		"Block %s of %s? No copy will be forwarded until the ttl ends.",
		func(cmd *cobra.Command, task *lookup.Question) error {
			if err := wiring.CheckMoved(cmd.Context(), task.Store, task.Scope); err != nil {
				return err
			}
			if err := task.Store.Register(cmd.Context(), task.Scope); err != nil {
				return err
			}
			answers, err := task.Store.Claim(cmd.Context(), task.Scope,
				[]dedup.Claim{{ID: task.ID, Owner: lookup.ManualOwner}})
			switch {
			case err != nil:
				return err
			case answers[0].Owner != lookup.ManualOwner:
				return fmt.Errorf(
					"%s is owned by the record at partition %d, offset %d; see kdedup id lookup",
					wiring.ShownID(task.ID), answers[0].Owner.Partition, answers[0].Owner.Offset)
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%s is blocked for %s\n", wiring.ShownID(task.ID),
				task.Topic.TTL)
			return nil
		})
}

// newIDChange is a command that asks first.
func newIDChange(
	use, short, question string, change func(*cobra.Command, *lookup.Question) error,
) *cobra.Command {
	var (
		flags idFlags
		yes   bool
	)
	cmd := &cobra.Command{
		Use:   use,
		Short: short,
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return flags.with(cmd, args[0], func(task *lookup.Question) error {
				if !yes &&
					!agreed(cmd, fmt.Sprintf(question, wiring.ShownID(task.ID), task.Topic.Input)) {
					return errors.New("nothing was changed")
				}
				return change(cmd, task)
			})
		},
	}
	flags.add(cmd)
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask")
	return cmd
}

func agreed(cmd *cobra.Command, question string) bool {
	fmt.Fprint(cmd.OutOrStdout(), question+" [y/N] ")
	line, _ := bufio.NewReader(cmd.InOrStdin()).ReadString('\n') // no answer is a no
	answer := strings.ToLower(strings.TrimSpace(line))
	return answer == "y" || answer == "yes"
}
