package command

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/command/report"
	"github.com/kdedup/kdedup/config"
	"github.com/kdedup/kdedup/connect"
	"github.com/kdedup/kdedup/connect/kafka"
	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/dedup/embedded"
)

func newValidate() *cobra.Command {
	var (
		flags   configFlags
		offline bool
	)
	cmd := &cobra.Command{
		Use:   "validate",
		Short: "Check a configuration and the servers that it names",
		Long: "Check all that kdedup run needs: the configuration, the topics, the consumer " +
			"groups, the store, the directory, the\n" +
			"address. Print each check and every problem. It changes nothing, and disturbs no " +
			"running process.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, log, err := flags.load(cmd)
			if err != nil {
				return err
			}
			warnOfUnencrypted(c, log)
			if !offline {
				list := &checklist{out: cmd.OutOrStdout()}
				list.check("the file "+flags.name(), nil)
				c = validate(cmd.Context(), c, log, list)
				if err := list.err(); err != nil {
					return err
				}
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%s is valid: %s\n", flags.name(),
				report.Counted(int64(len(c.Topics)), "topic", "topics"))
			return nil
		},
	}
	flags.add(cmd)
	cmd.Flags().BoolVar(&offline, "offline", false, "do not ask the servers")
	return cmd
}

// validate asks the servers, and goes on after a problem where the rest does not depend on it. It
// returns the configuration with an entry for each topic of the patterns.
func validate(
	ctx context.Context, c config.Config, log *slog.Logger, list *checklist,
) config.Config {
	ctx, cancel := context.WithTimeout(ctx, connect.StartTimeout)
	defer cancel()
	servers := connect.NewServers(c, log)
	clusters, err := servers.Reach(ctx)
	reached := list.check(kafkaAnswers(c.Kafka), err)
	if reached {
		file := c
		c = validatePatterns(ctx, clusters.Input, c, list)
		validateTopics(ctx, servers, clusters, c, log, list)
		validateSeries(ctx, clusters, file, c, list)
	}
	list.check("the store's directory can be written, where it has one", checkWritable(c.Store))
	if !reached {
		c, _ = c.Expand(nil)
		list.skip("topics, rights, consumer groups, message IDs", notAsked)
	}
	if !reached && c.Store.Type == config.StoreKafka {
		list.skip("the store and its scopes", notAsked)
	} else {
		validateStore(ctx, servers, clusters, reached, c.Topics, log, list)
	}
	list.checkListen(ctx, c.Server)
	if err := servers.Close(); err != nil {
		log.Warn("what was looked at did not end well", "error", err)
	}
	return c
}

// notAsked is why something behind Kafka was not checked.
const notAsked = "not asked, because Kafka does not answer"

func kafkaAnswers(k config.Kafka) string {
	if k.Output.Apart() {
		return "Kafka answers, on the cluster of the inputs and on that of kafka.output"
	}
	return "Kafka answers"
}

// validatePatterns lists what each pattern matches now.
func validatePatterns(
	ctx context.Context, client *kgo.Client, c config.Config, list *checklist,
) config.Config {
	expanded, left, err := connect.Expand(ctx, client, c)
	if err != nil {
		list.check("the topics of the patterns", err)
		expanded, _ = c.Expand(nil)
		return expanded
	}
	for i, t := range c.Topics {
		if t.Pattern == "" {
			continue
		}
		place := fmt.Sprintf("topics[%d] (", i)
		var inputs []string
		for _, e := range expanded.Topics {
			if strings.HasPrefix(e.Origin.Path, place) {
				inputs = append(inputs, e.Input)
			}
		}
		list.check(fmt.Sprintf("topics[%d].input.pattern matches %d topics now: %s", i, len(inputs),
			strings.Join(inputs, ", ")), nil)
	}
	if c.HasPatterns() {
		list.check("each topic that a pattern matches can have a pipeline", errors.Join(left...))
	}
	return expanded
}

func validateTopics(
	ctx context.Context, servers *connect.Servers, clusters kafka.Clusters, c config.Config,
	log *slog.Logger, list *checklist,
) {
	entries := connect.Entries(c.Topics)
	if !list.check("rights, topics, partitions, fences and consumer groups",
		connect.CheckTopics(ctx, clusters, c, entries)) {
		return
	}
	for _, t := range c.Topics {
		warnOfOldUnread(ctx, clusters.Input, t, log)
	}
	list.check("settings of the topics", connect.Each(entries, func(e *connect.Entry) error {
		return connect.CompareTopics(ctx, clusters, e.Topic, false, connect.WarnOf(log, e.Topic))
	}))
	list.check("message IDs of the newest records", validateIDs(ctx, servers, c.Topics, log))
	if r := c.SchemaRegistry; r.HasRegistry() || len(r.Schemas) > 0 {
		list.check("the schema registry answers, and its newest schemas have the message IDs",
			validateSchemas(ctx, servers, c.Topics, log))
	}
}

func validateSchemas(
	ctx context.Context, servers *connect.Servers, topics []config.Topic, log *slog.Logger,
) error {
	schemas, err := servers.Schemas()
	if err != nil {
		return err
	}
	return connect.Each(connect.Entries(topics), func(e *connect.Entry) error {
		return e.CheckSchemas(ctx, schemas, log)
	})
}

// validateIDs refuses a message_id that finds nothing in records that need one.
func validateIDs(
	ctx context.Context, servers *connect.Servers, topics []config.Topic, log *slog.Logger,
) error {
	var problems []error
	for _, e := range connect.Entries(topics) {
		n, err := servers.LookAtNewest(ctx, &e)
		switch {
		case err != nil:
			problems = append(problems, fmt.Errorf("%s: %w", e.Path, err))
			continue
		case n.None() && connect.NeedsIDs(e.Topic):
			problems = append(problems, n)
		case n.None():
			log.Warn("records without a message ID pass unclaimed", "reason", n.Error())
		case n.Remark() != "":
			log.Info(n.String())
		}
		if codecs := n.Compression(); codecs != "" {
			log.Info(codecs)
		}
	}
	return errors.Join(problems...)
}

// warnOfOldUnread tells where the lag comes near the ttl. A claim is made when its record is read,
// and only a copy that is read renews it, if any: a copy on a partition that lags by more than the
// ttl finds the claim ended.
func warnOfOldUnread(ctx context.Context, client *kgo.Client, t config.Topic, log *slog.Logger) {
	partitions, err := kafka.OldUnread(ctx, client, t, t.TTL/2)
	switch {
	case err != nil:
		log.Warn("the age of what is unread is not known", "topic", t.Input, "error", err)
	case len(partitions) > 0:
		log.Warn("records that wait are older than half the ttl: copies pass where a partition "+
			"lags by more than the ttl behind another; "+
			"raise the ttl before they are read", "topic", t.Input, "partitions", partitions,
			"ttl", t.TTL)
	}
}

// validateStore opens the store and looks into each scope. An embedded store that does not exist
// yet is not made; one that a running process uses is left alone. Where Kafka was not reached, it
// is not asked whether the claims are those of this cluster.
func validateStore(
	ctx context.Context, servers *connect.Servers, clusters kafka.Clusters, reached bool,
	topics []config.Topic, log *slog.Logger, list *checklist,
) {
	store, err := servers.StoreToLook(ctx)
	if errors.Is(err, embedded.ErrUsed) {
		list.skip("the store and its scopes", "used by a process that runs, which has checked them")
		return
	}
	if !list.check("the store answers", err) {
		return
	}
	if !list.check("rights on the store", connect.CheckRights(ctx, store)) {
		return
	}
	entries := connect.Entries(topics)
	if !list.check("the claims in the store are of these settings",
		connect.Each(entries, func(e *connect.Entry) error {
			return e.Compare(ctx, store)
		})) {
		return
	}
	for _, e := range entries {
		if e.KeepsEarlier {
			list.skip("message_id of "+e.Input, e.Earlier())
		}
	}
	if !reached {
		return
	}
	k, err := servers.Knowledge(ctx)
	if err == nil {
		err = connect.Each(entries, func(e *connect.Entry) error {
			return errors.Join(k.Check(ctx, clusters, e), connect.TellUnclaimed(ctx, clusters,
				e, func() (dedup.Store, error) { return store, nil },
				connect.WarnOf(log, e.Topic)))
		})
	}
	list.check("the store has the claims of what was handled, on this cluster", err)
}
