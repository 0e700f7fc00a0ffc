package proposal

import (
	"context"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/command/report"
	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/dedup/messageid"
)

// Window is a proposed ttl.
type Window struct {
	TTL time.Duration
	Why []string // sentences
}

const (
	day = 24 * time.Hour
	// usualWindow is the default of the configuration.
	usualWindow = 7 * day
	// longestLag is up to where the window follows the topic's retention.
	longestLag = 30 * day
)

// Keeping is how long a topic keeps its records; zero is not known, and below zero for ever.
type Keeping time.Duration

// Window looks how far apart the copies in the sample are. The window is at least the default,
// twice the distance of the farthest copy, and what the topic keeps: so long a pipeline may lag,
// and a claim counts from when its record is read.
func (s Sample) Window(
	ctx context.Context, e *messageid.Extractor, keeping Keeping, now time.Time,
) (Window, error) {
	r, err := report.Build(ctx, report.Options{
		Log: s.log, Extractor: e, Pipeline: report.Pipeline{TTL: usualWindow},
		Outcome: func(v dedup.Verdict) string { return v.String() },
		Now:     func() time.Time { return now },
		Read: func(each func([]*kgo.Record) error) error {
			return each(s.Records)
		},
	})
	if err != nil {
		return Window{}, err
	}
	w := Window{TTL: usualWindow}
	if len(s.Records) == 0 {
		w.Why = []string{"The topic has no records yet, so this is the default."}
		return w, nil
	}
	length := r.Range.To.Sub(r.Range.From)
	if farthest := r.Ages.Largest; farthest != nil {
		age := time.Duration(*farthest * float64(time.Second))
		w.Why = append(w.Why, fmt.Sprintf("In the sample, which is %s long, copies come up to %s "+
			"behind the first record of their ID.", report.Span(length), report.Span(age)))
		w.raise(2*age, "The window is twice that.")
	} else {
		w.Why = append(w.Why, fmt.Sprintf("The sample, which is %s long, has no copies.",
			report.Span(length)))
	}
	w.keep(time.Duration(keeping))
	return w, nil
}

func (w *Window) keep(keeping time.Duration) {
	switch {
	case keeping < 0:
		w.Why = append(w.Why, "The topic keeps its records for ever.")
	case keeping > 0:
		w.Why = append(w.Why, fmt.Sprintf("The topic keeps records for %s.", report.Span(keeping)))
		if keeping <= longestLag {
			w.raise(keeping, "The window is as long, so that a pipeline that lags finds all claims.")
		}
	}
}

// raise makes the window longer if it is too short, to whole days.
func (w *Window) raise(least time.Duration, why string) {
	if least > w.TTL {
		w.TTL = (least + day - 1).Truncate(day)
		w.Why = append(w.Why, why)
	}
}
