package command

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/kdedup/kdedup/command/migration"
	"github.com/kdedup/kdedup/config"
)

const migrateHelp = `Move the claims of each scope from the store of one file to that of another one.

Stop all processes that claim in the scope first. Then

  kdedup setup -c NEW.yaml
  kdedup migrate -c NEW.yaml --from OLD.yaml

copies all claims as they are: owner, content, time and end. It compares both stores, and then lets
kdedup start with the new one, and no longer with the old one. It may be interrupted at any point
and run again; until it has ended well, the new store is refused, and the old one can be used.

The stores may be of any two types, or two places in one: another keyspace, key prefix, schema,
directory, claim topic, or another scope with other buckets. Both files name the same inputs and
message IDs on the same Kafka cluster. docs/migrate.md has the details.`

func newMigrate() *cobra.Command {
	var flags migrateFlags
	cmd := &cobra.Command{
		Use:   "migrate",
		Short: "Move all claims to another store, without a gap",
		Long:  migrateHelp,
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return flags.run(cmd) },
	}
	flags.add(cmd)
	return cmd
}

type migrateFlags struct {
	configFlags
	from, topic         string
	yes, dryRun, cancel bool
}

func (f *migrateFlags) add(cmd *cobra.Command) {
	f.configFlags.add(cmd)
	cmd.Flags().StringVar(&f.from, "from", "",
		"the configuration `FILE` of the store that has the claims")
	if err := cmd.MarkFlagFilename("from", "yaml", "yml"); err != nil {
		panic(err)
	}
	f.addTopic(cmd, &f.topic, "only the scope of this input `TOPIC`")
	cmd.Flags().BoolVar(&f.dryRun, "dry-run", false, "only count what would be moved")
	cmd.Flags().BoolVar(&f.cancel, "cancel", false,
		"go on with the old store, after a move that has not ended well")
	cmd.Flags().BoolVarP(&f.yes, "yes", "y", false, "do not ask")
	cmd.MarkFlagsMutuallyExclusive("dry-run", "cancel")
}

func (f *migrateFlags) run(cmd *cobra.Command) (err error) {
	c, log, err := f.load(cmd)
	if err != nil {
		return err
	}
	before, err := f.before()
	if err != nil {
		return usageError{err}
	}
	line := newProgress(cmd.ErrOrStderr())
	m, err := migration.Open(cmd.Context(), migration.Options{
		Old: before, New: c, Topic: f.topic, DryRun: f.dryRun, Logger: log, Progress: line.count,
		Say: func(text string) {
			line.end()
			fmt.Fprintln(cmd.OutOrStdout(), text)
		},
		Agree: func(what string) error {
			if f.yes || agreed(cmd, what) {
				return nil
			}
			return errors.New("nothing was changed")
		},
	})
	defer func() { err = errors.Join(err, m.Close()) }()
	defer line.end()
	if err != nil {
		return err
	}
	switch {
	case f.dryRun:
		return m.DryRun(cmd.Context())
	case f.cancel:
		return m.Cancel(cmd.Context())
	}
	return m.Run(cmd.Context())
}

// before reads the other file, as the same instance.
func (f *migrateFlags) before() (config.Config, error) {
	if f.from == "" {
		return config.Config{}, errors.New("--from is missing: the file of the store that has " +
			"the claims")
	}
	other := configFlags{path: f.from, instance: f.instance}
	c, err := other.read()
	if err != nil {
		return config.Config{}, fmt.Errorf("--from: %w", err)
	}
	return c, nil
}
