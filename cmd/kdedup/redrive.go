package main

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/kdedup/kdedup/cmd/kdedup/internal/wiring"
	"github.com/kdedup/kdedup/config"
	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/dedup/messageid"
	"github.com/kdedup/kdedup/forwarder"
	"github.com/kdedup/kdedup/internal/redrive"
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

// knownReasons are those of dead letters, and the verdicts about duplicates.
func (f *redriveFlags) knownReasons() []string {
	duplicate, conflict := dedup.VerdictDuplicate.String(), dedup.VerdictConflict.String()
	if f.duplicates {
		return []string{duplicate, conflict}
	}
	known := []string{"missing_id"}
	for _, reason := range dedup.MissingReasons() {
		known = append(known, "missing_id_"+reason.String())
	}
	known = append(known, conflict, dedup.VerdictTombstone.String(), forwarder.ReasonSkipped)
	return append(known, forwarder.Reasons()...)
}

func (f *redriveFlags) run(cmd *cobra.Command) error {
	c, log, err := f.load(cmd)
	if err != nil {
		return err
	}
	t, err := chooseTopic(c.Topics, f.topic)
	if err != nil {
		return err
	}
	selection, err := f.check(t)
	if err == nil && f.into == intoInput && c.Kafka.Output.Apart() {
		err = errors.New("--into input: the letters, and the marks of those that were redriven, " +
			"are on the cluster of kafka.output, and one Kafka transaction cannot span two " +
			"clusters: use --into clean")
	}
	if err != nil {
		return usageError{err}
	}
	line := newProgress(cmd.ErrOrStderr())
	defer line.end()
	d, err := f.open(cmd.Context(), c, t, log)
	if err != nil {
		return err
	}
	defer d.close()
	d.options.Select, d.options.Progress = selection, line.show
	found, err := redrive.Scan(cmd.Context(), d.options)
	line.end()
	if err != nil {
		return err
	}
	if !f.dryRun && found.Letters > 0 && !f.yes && !agreed(cmd, fmt.Sprintf(
		"Redrive up to %d records of %s into %s?", found.Letters, d.options.Letters.Topic,
		d.options.Target.Output)) {
		return errors.New("nothing was changed")
	}
	if err := d.prepare(cmd.Context(), found, cmd.ErrOrStderr()); err != nil {
		return err
	}
	report, err := redrive.Run(cmd.Context(), d.options)
	line.end()
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

// check refuses flags that do not fit, before any server is asked.
func (f *redriveFlags) check(t config.Topic) (redrive.Selection, error) {
	var none redrive.Selection
	switch {
	case f.into == "":
		return none, errors.New("say where the records go: --into clean or --into input")
	case f.letters(t) == "" && f.duplicates:
		return none, fmt.Errorf("--duplicates: the entry of %s has no duplicates_topic", t.Input)
	case f.letters(t) == "":
		return none, fmt.Errorf("the entry of %s has no dead_letter_topic", t.Input)
	case f.conflicts && f.into != intoClean:
		return none, errors.New("--conflicts needs --into clean: the pipeline decides over " +
			"conflicts on the input, by on_conflict")
	case f.limit < 0:
		return none, fmt.Errorf("--limit must not be negative, got %d", f.limit)
	case f.maxRedrives < 1:
		return none, fmt.Errorf("--max-redrives must be at least 1, got %d", f.maxRedrives)
	case f.format == formatJSON && !f.yes && !f.dryRun:
		return none, errors.New("--format json needs --yes: the question would stand in the output")
	case marksTopic(t) == t.FenceTopic:
		return none, fmt.Errorf("redrive notes on topic %s what it has redriven, and that is the "+
			"fence_topic: give this entry another one", marksTopic(t))
	}
	extractor, err := wiring.ExtractorOf(t, nil)
	if err != nil {
		return none, err
	}
	return f.selection(time.Now(), extractor)
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

// letters is the topic that is redriven.
func (f *redriveFlags) letters(t config.Topic) string {
	if f.duplicates {
		return t.DuplicatesTopic
	}
	return t.DeadLetterTopic
}

// marksTopic tells which letters were redriven.
func marksTopic(t config.Topic) string { return t.ConsumerGroup + ".redrive" }
