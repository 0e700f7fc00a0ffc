package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/kdedup/kdedup/command/report"
	"github.com/kdedup/kdedup/config"
	"github.com/kdedup/kdedup/connect"
	"github.com/kdedup/kdedup/connect/kafka"
	"github.com/kdedup/kdedup/connect/logreader"
	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/dedup/cassandra"
	"github.com/kdedup/kdedup/dedup/embedded"
	"github.com/kdedup/kdedup/dedup/messageid"
	"github.com/kdedup/kdedup/process/build"
)

func newReport() *cobra.Command {
	var flags reportFlags
	cmd := &cobra.Command{
		Use:   "report",
		Short: "Tell how many duplicates an input topic holds, and which ttl catches them",
		Long: "Read what is on a pipeline's input topic and report on its duplicates: how many, " +
			"where, how far\n" +
			"apart, with other content or not, and which ttl would catch them. It joins no " +
			"consumer group, and\n" +
			"commits, claims and changes nothing. Its memory stays bounded: it sorts in " +
			"temporary files in\n" +
			"$TMPDIR, about 42 bytes and the ID for each record.\n\n" +
			"With --brokers it needs no configuration: it takes --topic and --id, or looks for the " +
			"message ID\n" +
			"as kdedup init does, and the defaults of all other settings.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, log, err := flags.loadOrDraft(cmd)
			if err != nil {
				return err
			}
			return flags.run(cmd, c, log)
		},
	}
	flags.add(cmd)
	return cmd
}

type reportFlags struct {
	configFlags
	connectionFlags
	registryFlags
	id              chosenID
	topic, from, to string
	maxRecords      int64
	format, output  string
	byHeader        string
	hideIDs         bool
}

func (f *reportFlags) add(cmd *cobra.Command) {
	f.configFlags.add(cmd)
	f.connectionFlags.add(cmd)
	f.registryFlags.add(cmd)
	cmd.Flags().Var(&f.id, "id",
		"where the message ID stands, in place of the configured one: `PLACE`, "+idForms)
	f.addTopic(cmd, &f.topic, "input `TOPIC` (needed if the configuration has several)")
	cmd.Flags().StringVar(&f.from, "from", "",
		"`TIME` of the first record: 2026-01-31T12:00:00Z, or 72h for 72 hours ago")
	cmd.Flags().StringVar(&f.to, "to", "",
		"`TIME` up to which records count, in the same forms")
	cmd.Flags().Int64Var(&f.maxRecords, "max-records", 0,
		"read only about the newest `NUMBER` of records (0: all)")
	addFormat(cmd, &f.format, formatTable, formatJSON, formatHTML)
	cmd.Flags().StringVar(&f.output, "output", "",
		"write to `FILE` (default: standard output); .html or .json says the form, too")
	cmd.Flags().StringVar(&f.byHeader, "by-header", "",
		"also count by the values of the header `NAME`")
	cmd.Flags().BoolVar(&f.hideIDs, "hide-ids", false, "show hashes in place of message IDs")
}

func (f *reportFlags) run(cmd *cobra.Command, c config.Config, log *slog.Logger) (err error) {
	if !cmd.Flags().Changed("format") && !cmd.Flags().Changed("json") {
		f.format = formatOf(f.output)
	}
	topic, err := chooseTopic(c.Topics, f.topic)
	if err != nil {
		return err
	}
	bounds, err := f.bounds(time.Now())
	if err != nil {
		return err
	}
	servers := connect.NewServers(c, log)
	defer func() { err = errors.Join(err, servers.Close()) }()
	options, err := f.options(cmd.Context(), c, servers, topic, bounds, log)
	if err != nil {
		return err
	}
	line := newProgress(cmd.ErrOrStderr())
	options.Progress = line.show
	found, err := report.Build(cmd.Context(), options)
	line.end()
	if err != nil {
		return err
	}
	return f.write(found, cmd.OutOrStdout())
}

// bounds checks the flags.
func (f *reportFlags) bounds(now time.Time) (b logreader.Bounds, err error) {
	if b.From, err = parseTime("--from", f.from, now); err != nil {
		return b, err
	}
	if b.To, err = parseTime("--to", f.to, now); err != nil {
		return b, err
	}
	if !b.From.IsZero() && !b.To.IsZero() && !b.From.Before(b.To) {
		return b, usageError{fmt.Errorf("--from must be before --to, got %s and %s",
			b.From.Format(time.RFC3339), b.To.Format(time.RFC3339))}
	}
	if f.maxRecords < 0 {
		return b, usageError{fmt.Errorf("--max-records must not be negative, got %d", f.maxRecords)}
	}
	b.MaxRecords = f.maxRecords
	return b, nil
}

// parseTime takes a time, or how long ago it was; nothing is the zero time.
func parseTime(flag, text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if ago, err := time.ParseDuration(text); err == nil && ago >= 0 {
		return now.Add(-ago), nil
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return time.Time{},
			usageError{fmt.Errorf(
				"%s must be a time as 2026-01-31T12:00:00Z, or how long ago, as 72h; got %q", flag,
				text)}
	}
	return at, nil
}

func (f *reportFlags) options(
	ctx context.Context, c config.Config, servers *connect.Servers, t config.Topic,
	bounds logreader.Bounds, log *slog.Logger,
) (report.Options, error) {
	e, err := servers.Entry(t)
	if err != nil {
		return report.Options{}, err
	}
	values, err := messageid.NewReader(t.ContentFormat(), e.Schemas)
	if err != nil {
		return report.Options{}, err
	}
	connection, err := servers.InputOptions(ctx, "report")
	if err != nil {
		return report.Options{}, err
	}
	part, err := describeLog(ctx, servers, t, t.Input, bounds)
	if err != nil {
		return report.Options{}, err
	}
	o := report.Options{
		Connection: connection, Log: part, Bounded: bounds != logreader.Bounds{},
		Extractor: e.Extractor, Header: f.byHeader, HideIDs: f.hideIDs, Version: build.Version(),
		Pipeline: report.Pipeline{
			ConsumerGroup: t.ConsumerGroup, Output: t.Output, Mode: string(t.Mode),
			OnMissingID: string(t.OnMissingID), OnConflict: string(t.OnConflict),
			TTL: t.TTL, Sliding: t.Sliding(),
			Store: c.Store.Type, Disk: diskOf(c.Store),
		},
		Outcome: outcomeOf(t), Document: values.Document,
	}
	if o.Pipeline.OldUnread, err = oldUnread(ctx, servers, t); err != nil {
		log.Warn("the age of what the consumer group has not read is not known", "error", err)
	}
	if c.Store.Type == config.StoreCassandra && !c.Store.Logs() {
		o.Pipeline.Buckets = t.Buckets
	}
	return o, nil
}

// oldUnread asks where the group's lag comes near the ttl. A group that has committed nothing has
// none: the report is made before it begins.
func oldUnread(ctx context.Context, servers *connect.Servers, t config.Topic) ([]int32, error) {
	ctx, cancel := context.WithTimeout(ctx, connect.StartTimeout)
	defer cancel()
	clusters, err := servers.Clusters(ctx)
	if err != nil {
		return nil, err
	}
	t.Start = config.StartLatest // only what lies behind a commit
	return kafka.OldUnread(ctx, clusters.Input, t, t.TTL/2)
}

func diskOf(store config.Store) report.Disk {
	switch {
	case store.Logs():
	case store.Type == config.StoreCassandra:
		return report.Disk{RowBytes: cassandra.RowBytes, Grace: cassandra.Grace}
	case store.Type == config.StoreEmbedded:
		return report.Disk{RowBytes: embedded.RowBytes}
	}
	return report.Disk{}
}

// describeLog asks what of a topic of the pipeline there is to read.
func describeLog(
	ctx context.Context, servers *connect.Servers, t config.Topic, topic string,
	bounds logreader.Bounds,
) (logreader.Log, error) {
	ctx, cancel := context.WithTimeout(ctx, connect.StartTimeout)
	defer cancel()
	clusters, err := servers.Clusters(ctx)
	if err != nil {
		return logreader.Log{}, err
	}
	if err := clusters.PingOf(ctx, t, topic); err != nil {
		return logreader.Log{}, err
	}
	return logreader.Describe(ctx, clusters.Of(t, topic), topic, bounds)
}

// outcomeOf names what the pipeline does with a verdict, as its metrics do.
func outcomeOf(t config.Topic) func(dedup.Verdict) string {
	policy := connect.PolicyOf(t)
	return func(v dedup.Verdict) string {
		outcome, goesOn := policy.Outcome(v)
		if !goesOn {
			return "the_pipeline_ends"
		}
		return outcome.String()
	}
}

// formatOf is what the name of a file asks for.
func formatOf(file string) string {
	switch strings.ToLower(filepath.Ext(file)) {
	case ".html", ".htm":
		return formatHTML
	case ".json":
		return formatJSON
	}
	return formatTable
}

func (f *reportFlags) write(r *report.Report, out io.Writer) error {
	write := map[string]func(io.Writer) error{formatTable: r.WriteTable, formatJSON: r.WriteJSON,
		formatHTML: r.WriteHTML}[f.format]
	if f.output == "" {
		return write(out)
	}
	file, err := os.Create(f.output)
	if err != nil {
		return fmt.Errorf("--output: %w", err)
	}
	return errors.Join(write(file), file.Close())
}
