package command

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kdedup/kdedup/connect"
	"github.com/kdedup/kdedup/dedup/embedded"
	"github.com/kdedup/kdedup/process/lookup"
)

func newIDRelease() *cobra.Command {
	cmd := idChange{
		use: "release ID", short: "Forget an ID: the next copy is forwarded as the first one",
		question: "Forget %s of %s? The next copy will be forwarded as the first one.",
		change:   (*lookup.Question).Release, path: "/api/release",
	}.command()
	cmd.Long = releaseHelp
	return cmd
}

const releaseHelp = `Forget an ID: the next copy is forwarded as the first one.

On Cassandra a release is a delete. A replica that is away, and is not repaired within the table's
gc_grace_seconds (3 h by default), can bring the old claim back. Send the message again soon after
the release: its claim takes the place of the old one for good.`

func newIDClaim() *cobra.Command {
	return idChange{
		use:      "claim ID",
		short:    "Block an ID: every copy is a duplicate until the ttl ends, whatever its content",
		question: "Block %s of %s? No copy will be forwarded until the ttl ends.",
		change:   (*lookup.Question).Claim, path: "/api/claim",
	}.command()
}

// idChange is a command that asks first.
type idChange struct {
	use, short, question string

	change func(*lookup.Question, context.Context) (said string, err error)
	path   string // at which the process that has the store does the same
}

func (c idChange) command() *cobra.Command {
	var (
		flags idFlags
		yes   bool
	)
	cmd := &cobra.Command{
		Use:   c.use,
		Short: c.short,
		Args:  oneID,
		RunE: func(cmd *cobra.Command, args []string) error {
			q, err := flags.asked(cmd, args[0])
			if err != nil {
				return err
			}
			said, err := c.run(cmd, q, yes)
			if err != nil {
				return err
			}
			fmt.Fprintln(cmd.OutOrStdout(), said)
			return nil
		},
	}
	flags.add(cmd)
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask")
	return cmd
}

// run changes the store, or has the process do so that has it to itself.
func (c idChange) run(cmd *cobra.Command, q asked, yes bool) (said string, err error) {
	refuses := func(id string) bool {
		return !yes && !agreed(cmd, fmt.Sprintf(c.question, id, q.topic.Input))
	}
	found, answers := q.askFirst(cmd.Context())
	if answers {
		if refuses(found.ID) {
			return "", errUnchanged
		}
		return changeInProcess(cmd.Context(), q, c.path, found)
	}
	err = q.with(cmd.Context(), func(task *lookup.Question) error {
		if refuses(connect.ShownID(task.ID)) {
			return errUnchanged
		}
		said, err = c.change(task, cmd.Context())
		return err
	})
	if !errors.Is(err, embedded.ErrUsed) {
		return said, err
	}
	if found, err = askProcess(cmd.Context(), q.config, q.topic, q.ids); err != nil {
		return "", err
	}
	if refuses(found.ID) {
		return "", errUnchanged
	}
	return changeInProcess(cmd.Context(), q, c.path, found)
}

var errUnchanged = errors.New("nothing was changed")

func agreed(cmd *cobra.Command, question string) bool {
	fmt.Fprint(cmd.OutOrStdout(), question+" [y/N] ")
	line, _ := bufio.NewReader(cmd.InOrStdin()).ReadString('\n') // no answer is a no
	answer := strings.ToLower(strings.TrimSpace(line))
	return answer == "y" || answer == "yes"
}
