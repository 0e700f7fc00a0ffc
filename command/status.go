package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/kdedup/kdedup/command/report"
	"github.com/kdedup/kdedup/internal/pause"
)

// statusFlags say which process is asked, and how often.
type statusFlags struct {
	login
	watch bool
	every time.Duration
}

func newStatus() *cobra.Command {
	f := statusFlags{}
	cmd := &cobra.Command{
		Use:   "status [URL]",
		Short: "Show the pipelines of a running kdedup in the terminal",
		Long: "Ask /api/status of a running kdedup, by default that of this machine, and show its " +
			"pipelines, its store and its last\nwarnings, as its page does. DUPLICATES and PROBLEMS " +
			"are of the last five minutes; FORWARDED, COPIES and DEAD\nLETTERS are counted since " +
			"the start of the process; - is not known yet, under DUPLICATES: nothing was " +
			"read. With --watch\nthe " +
			"terminal keeps up until Ctrl-C. The exit code is 1 unless the process is ready.",
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			url, err := f.addressOf(args, "/api/status")
			if err != nil {
				return usageError{err}
			}
			return f.run(cmd.Context(), url, cmd.OutOrStdout())
		},
	}
	f.login.add(cmd)
	flags := cmd.Flags()
	flags.BoolVarP(&f.watch, "watch", "w", false, "show it again and again")
	flags.DurationVar(&f.every, "every", 2*time.Second, "`TIME` between two looks of --watch")
	return cmd
}

func (f *statusFlags) run(ctx context.Context, url string, out io.Writer) error {
	if err := f.login.check(); err != nil {
		return err
	}
	if f.every < 100*time.Millisecond {
		return usageError{fmt.Errorf("--every must be at least 100ms, got %s", f.every)}
	}
	for {
		now, err := f.ask(ctx, url)
		if f.watch && ctx.Err() != nil {
			return nil
		}
		if f.watch && isTerminal(out) {
			fmt.Fprint(out, "\x1b[H\x1b[2J")
		}
		switch {
		case err == nil:
			now.show(printed{out}, url)
		case !f.watch || errors.As(err, new(usageError)):
			return err
		default:
			fmt.Fprintln(out, err) // the process may come back
		}
		if !f.watch {
			return now.err()
		}
		fmt.Fprintln(out)
		if !pause.For(ctx, f.every) {
			return nil
		}
	}
}

func (f *statusFlags) ask(ctx context.Context, url string) (s statusNow, err error) {
	answer, err := f.login.get(ctx, url, http.StatusOK)
	if err != nil {
		return s, err
	}
	if err := json.Unmarshal(answer, &s); err != nil || s.Process.Instance == "" {
		return s, fmt.Errorf("%s answered, but not as a kdedup: does another server listen there?",
			url)
	}
	return s, nil
}

// statusNow is what is shown of the answer; docs/status-page.md describes it.
type statusNow struct {
	Time, State string
	Process     struct{ Instance, Version string }
	Checks      []struct {
		Name, Error string
		OK          bool
	}
	Pipelines []pipelineNow
	Held      []string
	Store     struct {
		Type, State, Error string
		Blocked            []string
	}
	Clusters []struct {
		Name, State string
		Addresses   []string
		ID          string `json:"cluster_id"`
	}
	API    *apiNow
	Events []struct {
		Level, Message, Error, Hint, Topic, Lane, Details, Last string
		Count                                                   int
	}
}

type pipelineNow struct {
	Input, Output, State string
	Records              struct {
		PerSecond *float64 `json:"per_second"`
	}
	Duplicates struct{ Share *float64 }
	Problems   struct{ Count float64 }
	Lag        struct{ Records *int64 }
	Outcomes   []rateNow // since the start
}

// total is that of the outcomes with these names.
func (p pipelineNow) total(names ...string) string {
	sum := 0.0
	for _, o := range p.Outcomes {
		if slices.Contains(names, o.Name) {
			sum += o.Total
		}
	}
	return report.Number(int64(sum))
}

// err tells that the process is not ready.
func (s *statusNow) err() error {
	if s.State == "ready" {
		return nil
	}
	return fmt.Errorf("%s is %s", s.Process.Instance, strings.ReplaceAll(s.State, "_", " "))
}

const mostShownEvents = 5

// showPipelines shows none of kdedup serve, which has none.
func (s *statusNow) showPipelines(out io.Writer) {
	if len(s.Pipelines) == 0 && s.API != nil {
		return
	}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "STATE\tPIPELINE\tRECORDS/S\tDUPLICATES\tLAG\tPROBLEMS\tFORWARDED\t"+
		"COPIES\tDEAD LETTERS")
	for _, p := range s.Pipelines {
		fmt.Fprintf(table, "%s\t%s -> %s\t%s\t%s\t%s\t%.0f\t%s\t%s\t%s\n",
			strings.ReplaceAll(p.State, "_", " "), p.Input, p.Output,
			perSecond(p.Records.PerSecond), shareOf(p.Duplicates.Share), lagOf(p.Lag.Records),
			p.Problems.Count, p.total("forwarded"), p.total("duplicate", "conflict"),
			p.total("dead_lettered"))
	}
	_ = table.Flush()
}

func (s *statusNow) show(out io.Writer, asked string) {
	fmt.Fprintf(out, "%s  %s  %s  %s  %s\n", s.Process.Instance,
		strings.ReplaceAll(s.State, "_", " "), s.Process.Version, s.Time,
		strings.TrimSuffix(asked, "/api/status"))
	for _, c := range s.Checks {
		if !c.OK {
			fmt.Fprintf(out, "  %s: %s\n", c.Name, c.Error)
		}
	}
	for _, c := range s.Clusters {
		fmt.Fprintf(out, "kafka  %s  %s  %s  %s\n", c.Name, c.State,
			strings.Join(c.Addresses, ","), c.ID)
	}
	fmt.Fprintf(out, "store  %s  %s %s\n\n", s.Store.Type, s.Store.State, s.Store.Error)
	s.showPipelines(out)
	s.API.show(out)
	for _, held := range s.Held {
		fmt.Fprintln(out, "held ", held)
	}
	for i, e := range s.Events {
		if i == 0 {
			fmt.Fprintln(out)
		}
		if i == mostShownEvents {
			fmt.Fprintf(out, "and %d more on the page\n", len(s.Events)-i)
			break
		}
		fmt.Fprintf(out, "%s  %-5s  %s", e.Last, e.Level, e.Message)
		place := e.Topic
		switch {
		case strings.Contains(e.Lane, ","):
			place += " lanes " + e.Lane
		case e.Lane != "":
			place += " lane " + e.Lane
		}
		for _, more := range []string{place, e.Error, e.Details, e.Hint} {
			if more != "" {
				fmt.Fprint(out, "; ", more)
			}
		}
		if e.Count > 1 {
			fmt.Fprintf(out, " (%d times)", e.Count)
		}
		fmt.Fprintln(out)
	}
}

// printed keeps what kdedup tells of a record from steering the terminal.
type printed struct{ to io.Writer }

func (p printed) Write(text []byte) (int, error) {
	lines := strings.Split(string(text), "\n")
	for i, line := range lines {
		lines[i] = report.Printable(line)
	}
	_, err := io.WriteString(p.to, strings.Join(lines, "\n"))
	return len(text), err
}

const unknownYet = "-"

func perSecond(rate *float64) string {
	if rate == nil {
		return unknownYet
	}
	return report.Number(int64(*rate + 0.5))
}

func shareOf(share *float64) string {
	if share == nil {
		return unknownYet
	}
	return report.Percent(*share)
}

func lagOf(records *int64) string {
	if records == nil {
		return unknownYet
	}
	return report.Number(*records)
}
