package redrive

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/kdedup/kdedup/forwarder"
)

// Why a letter is refused. It stays where it is.
const (
	NotALetter   = "not_a_letter"
	ValueMissing = "value_missing"
	TooOften     = "redriven_too_often"
	TooOld       = "too_old"
	NoPartition  = "no_such_partition"
	MissingID    = "missing_id"
	Tombstone    = "tombstone"
	Duplicate    = "duplicate"
	Conflict     = "conflict"
	ClaimEnded   = "claim_ended"
	NotCommitted = "not_committed"
)

// remedies say it to people, with what to do.
var remedies = map[string]string{
	NotALetter: "its headers are not as kdedup writes them",
	ValueMissing: "the dead letter is without its value, which was too large for its topic: send " +
		"the record of the input again",
	TooOften: "it was redriven into the input before, and came back each time: fix the cause, " +
		"then raise --max-redrives",
	TooOld: "it is older than retention.ms of the topic, and could be deleted before it is read: " +
		"--timestamp now",
	NoPartition: "the topic has fewer partitions than the input had: add partitions",
	MissingID: "the configured message_id does not find its ID: correct message_id first, for " +
		"example with a list of places; a value that was cut off has none, whatever message_id " +
		"says: its producer has to send it again",
	Tombstone: "on_tombstone keeps it from the clean topic: --into clean",
	Duplicate: "another record with this content owns its ID: it was, or will be, forwarded; if " +
		"not, see kdedup id release",
	Conflict: "another record with other content owns its ID: --into clean --conflicts forwards it " +
		"all the same",
	ClaimEnded: "it is a copy, and the claim that shows whose has ended: as a new message it would " +
		"be twice on the clean topic",
	NotCommitted:              "the pipeline has not committed its record yet: wait for it, and try again",
	forwarder.ReasonTooLarge:  "the topic takes no record so large: raise its max.message.bytes",
	forwarder.ReasonTimestamp: "the topic does not take its timestamp: --timestamp now",
	forwarder.ReasonNullKey:   "the topic is compacted and takes no record without a key",
	forwarder.ReasonInvalid:   "the topic's brokers refuse it",
}

// mostExamples are named for each reason.
const mostExamples = 5

// Refusal is a reason, and the letters that were refused for it.
type Refusal struct {
	Reason   string   `json:"reason"`
	Letters  int64    `json:"letters"`
	Examples []string `json:"examples"` // places of the first ones
	Remedy   string   `json:"remedy"`
}

// Report is what became of the letters. Each that was read is in exactly one of the other counts.
type Report struct {
	Topic          string    `json:"topic"`
	Into           string    `json:"into"`
	DryRun         bool      `json:"dry_run"`
	Read           int64     `json:"read"`
	OtherPipelines int64     `json:"other_pipelines"`
	NotSelected    int64     `json:"not_selected"`
	Earlier        int64     `json:"redriven_earlier"`
	Redriven       int64     `json:"redriven"`
	Released       int64     `json:"released"` // of those redriven: the ID was freed for it
	Refused        []Refusal `json:"refused"`

	byReason map[string]*Refusal
}

func newReport(o *Options) *Report {
	return &Report{Topic: o.Letters.Topic, Into: o.Target.Output, DryRun: o.DryRun,
		byReason: make(map[string]*Refusal)}
}

func (r *Report) redrove(l *letter) {
	r.Redriven++
	if l.release {
		r.Released++
	}
}

func (r *Report) refuse(reason, place string) {
	refusal := r.byReason[reason]
	if refusal == nil {
		refusal = &Refusal{Reason: reason, Remedy: remedies[reason]}
		r.byReason[reason] = refusal
	}
	refusal.Letters++
	if len(refusal.Examples) < mostExamples {
		refusal.Examples = append(refusal.Examples, place)
	}
}

// NothingDone is an error if letters were to be redriven, and each of them was refused.
func (r *Report) NothingDone() error {
	var refused int64
	for _, refusal := range r.Refused {
		refused += refusal.Letters
	}
	if r.DryRun || refused == 0 || r.Redriven > 0 || r.Earlier > 0 {
		return nil
	}
	return fmt.Errorf("nothing was redriven: %d of %d letters were refused, for the reasons above",
		refused, refused)
}

// finished is the report with its lists.
func (r *Report) finished() *Report {
	r.Refused = []Refusal{}
	for _, reason := range slices.Sorted(maps.Keys(r.byReason)) {
		r.Refused = append(r.Refused, *r.byReason[reason])
	}
	return r
}

// WriteJSON writes the report for programs.
func (r *Report) WriteJSON(out io.Writer) error {
	encoder := json.NewEncoder(out)
	encoder.SetIndent("", "  ")
	return encoder.Encode(r)
}

// WriteTable writes the report for people.
func (r *Report) WriteTable(out io.Writer) error {
	redriven, released := "redriven", "released"
	if r.DryRun {
		redriven, released = "would be redriven", "would be released"
	}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	row := func(name string, n int64, note string) {
		fmt.Fprintf(table, "%s\t%d\t  %s\n", name, n, note)
	}
	row("read", r.Read, "from "+r.Topic)
	row(redriven, r.Redriven, "into "+r.Into)
	if r.Released > 0 {
		row(released, r.Released, "of their IDs, for the pipeline to claim them again")
	}
	row("earlier", r.Earlier, "redriven before")
	row("left out", r.NotSelected, "by the selection")
	if r.OtherPipelines > 0 {
		row("", r.OtherPipelines, "of other pipelines")
	}
	for _, refused := range r.Refused {
		row("refused", refused.Letters, refused.Reason+": "+
			cmp.Or(refused.Remedy, "see docs/redrive.md"))
		fmt.Fprintf(table, "\t\t    %s\n", strings.Join(refused.Examples, ", "))
	}
	return table.Flush()
}

// Single says what became of a single letter, and whether it was sent.
func (r *Report) Single() (word string, sent bool) {
	switch {
	case r.Redriven > 0 && r.Released > 0:
		return "sent to " + r.Into + ", and its ID was freed for the pipeline to claim it again", true
	case r.Redriven > 0:
		return "sent to " + r.Into, true
	case r.Earlier > 0:
		return "was redriven before, and is not sent again", false
	}
	for _, refused := range r.Refused {
		return "refused, and stays where it is: " + cmp.Or(refused.Remedy, refused.Reason), false
	}
	return "is no letter of this pipeline", false
}
