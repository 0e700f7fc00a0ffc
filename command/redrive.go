package command

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/kdedup/kdedup/config"
	"github.com/kdedup/kdedup/connect"
	"github.com/kdedup/kdedup/dedup/messageid"
	"github.com/kdedup/kdedup/process/redrive"
	"github.com/kdedup/kdedup/process/redriving"
)

const redriveHelp = `Send dead letters, or dropped duplicates, on their way again once the cause is fixed.

  --into input   as they were on the input, where the pipeline judges them again. The claim that a
                 record left behind is released. A header counts how often this was done.
  --into clean   straight to the clean topic, byte for byte, each with a claim for its ID

A letter that was redriven is not redriven again, whatever is selected later: you may interrupt the
command at any point, and run it again. Letters that would come back, or be twice on the clean
topic, are refused and stay where they are; the report says why. Nothing is taken from the
dead-letter topic. docs/redrive.md has the details.`

func newRedrive() *cobra.Command {
	var flags redriveFlags
	cmd := &cobra.Command{
		Use:   "redrive",
		Short: "Send dead letters and dropped duplicates on their way again",
		Long:  redriveHelp,
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return flags.run(cmd) },
	}
	flags.add(cmd)
	return cmd
}

type redriveFlags struct {
	configFlags
	topic, into            string
	duplicates             bool
	reasons, ids, offsets  []string
	hex                    bool
	partitions             []int32
	from, to               string
	limit                  int64
	timestamp, format      string
	conflicts, dryRun, yes bool
	maxRedrives            int
}

const (
	intoClean, intoInput       = "clean", "input"
	timeOriginal, timeOfSender = "original", "now"
)

func (f *redriveFlags) add(cmd *cobra.Command) {
	f.configFlags.add(cmd)
	f.addTopic(cmd, &f.topic, "input `TOPIC` (needed if the configuration has several)")
	addChoice(cmd, &f.into, "into", "where the records go, a `TOPIC` of the pipeline", intoClean,
		intoInput)
	flags := cmd.Flags()
	flags.BoolVar(&f.duplicates, "duplicates", false,
		"redrive what is on duplicates_topic, in place of dead_letter_topic")
	flags.StringSliceVar(&f.reasons, "reason", nil,
		"only letters with this `REASON`, or this verdict; missing_id stands for all that begin so")
	complete(cmd, "reason", f.knownReasons)
	flags.StringArrayVar(&f.ids, "id", nil, "only records with this message `ID`")
	flags.BoolVar(&f.hex, "hex", false, "IDs are written in hexadecimal digits")
	flags.Int32SliceVar(&f.partitions, "partition", nil,
		"only letters on this partition, by its `NUMBER` on the topic that is redriven")
	flags.StringSliceVar(&f.offsets, "offset", nil,
		"only letters at this offset, or in this `RANGE`: 12, 10-20, 10- or -20")
	flags.StringVar(&f.from, "from", "",
		"only records from this `TIME` on: 2026-01-31T12:00:00Z, or 72h for 72 hours ago")
	flags.StringVar(&f.to, "to", "", "only records before this `TIME`, in the same forms")
	flags.Int64Var(&f.limit, "limit", 0, "redrive at most this `NUMBER` of letters (0: all)")
	flags.BoolVar(&f.conflicts, "conflicts", false,
		"with --into clean: also records whose ID belongs to a record with other content")
	flags.IntVar(&f.maxRedrives, "max-redrives", 3,
		"with --into input: refuse a record that was redriven this `NUMBER` of times already")
	f.timestamp = timeOriginal
	addChoice(cmd, &f.timestamp, "timestamp", "the `TIME` that records get", timeOriginal,
		timeOfSender)
	flags.BoolVar(&f.dryRun, "dry-run", false, "only say what would be redriven")
	flags.BoolVarP(&f.yes, "yes", "y", false, "do not ask")
	addFormat(cmd, &f.format, formatTable, formatJSON)
}

func (f *redriveFlags) knownReasons() []string { return redriving.Reasons(f.duplicates) }

func (f *redriveFlags) run(cmd *cobra.Command) error {
	c, log, err := f.load(cmd)
	if err != nil {
		return err
	}
	t, err := chooseTopic(c.Topics, f.topic)
	if err != nil {
		return err
	}
	r, err := f.request(c, t)
	if err != nil {
		return usageError{err}
	}
	line := newProgress(cmd.ErrOrStderr())
	defer line.end()
	r.Progress = line.show
	d, err := redriving.Open(cmd.Context(), c, r, redriving.OwnStore(c, log), log)
	if err != nil {
		return err
	}
	defer d.Close()
	found, err := d.Scan(cmd.Context())
	line.end()
	if err != nil {
		return err
	}
	if !f.dryRun && found.Letters > 0 && !f.yes && !agreed(cmd, fmt.Sprintf(
		"Redrive up to %d records of %s into %s?", found.Letters, d.From(), d.Target())) {
		return errors.New("nothing was changed")
	}
	report, err := d.Run(cmd.Context(), found, func(line string) {
		fmt.Fprintln(cmd.ErrOrStderr(), line)
	})
	line.end()
	if report == nil {
		return err
	}
	if err != nil && cmd.Context().Err() != nil {
		err = fmt.Errorf("interrupted; what was redriven stands, run it again to go on: %w", err)
	}
	if err != nil && report.Read == 0 {
		return err
	}
	write := report.WriteTable
	if f.format == formatJSON {
		write = report.WriteJSON
	}
	if err == nil {
		err = report.NothingDone()
	}
	return errors.Join(write(cmd.OutOrStdout()), err)
}

// request refuses flags that do not fit, before any server is asked.
func (f *redriveFlags) request(c config.Config, t config.Topic) (r redriving.Request, err error) {
	r = redriving.Request{Topic: t, Duplicates: f.duplicates, Limit: f.limit,
		Now: f.timestamp == timeOfSender, Conflicts: f.conflicts, MaxRedrives: f.maxRedrives,
		DryRun: f.dryRun}
	if f.into == intoInput {
		r.Into = redrive.Input
	}
	switch {
	case f.into == "":
		return r, errors.New("say where the records go: --into clean or --into input")
	case f.conflicts && f.into != intoClean:
		return r, errors.New("--conflicts needs --into clean: the pipeline decides over " +
			"conflicts on the input, by on_conflict")
	case f.limit < 0:
		return r, fmt.Errorf("--limit must not be negative, got %d", f.limit)
	case f.maxRedrives < 1:
		return r, fmt.Errorf("--max-redrives must be at least 1, got %d", f.maxRedrives)
	case f.format == formatJSON && !f.yes && !f.dryRun:
		return r, errors.New("--format json needs --yes: the question would stand in the output")
	}
	if err := r.Check(c); errors.Is(err, redriving.ErrApart) {
		return r, fmt.Errorf("--into input: %w: use --into clean", err)
	} else if err != nil {
		return r, err
	}
	extractor, err := connect.ExtractorOf(t, nil)
	if err != nil {
		return r, err
	}
	r.Select, err = f.selection(time.Now(), extractor)
	return r, err
}

func (f *redriveFlags) selection(
	now time.Time, extractor *messageid.Extractor,
) (s redrive.Selection, err error) {
	for _, reason := range f.reasons {
		if known := f.knownReasons(); !slices.Contains(known, reason) {
			return s, fmt.Errorf("--reason must be %s, got %q", oneOf(known), reason)
		}
	}
	s.Reasons, s.Partitions = f.reasons, f.partitions
	for _, text := range f.ids {
		ids, err := parseID(text, f.hex, extractor)
		if err != nil {
			return s, err
		}
		s.IDs = append(s.IDs, ids...)
	}
	for _, text := range f.offsets {
		r, err := redrive.ParseOffsets(text)
		if err != nil {
			return s, fmt.Errorf("--offset %w", err)
		}
		s.Offsets = append(s.Offsets, r)
	}
	if s.From, err = parseTime("--from", f.from, now); err == nil {
		s.To, err = parseTime("--to", f.to, now)
	}
	if err == nil && !s.From.IsZero() && !s.To.IsZero() && !s.From.Before(s.To) {
		err = fmt.Errorf("--from must be before --to, got %s and %s", s.From.Format(time.RFC3339),
			s.To.Format(time.RFC3339))
	}
	return s, err
}
