package command

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/command/proposal"
	"github.com/kdedup/kdedup/command/report"
	"github.com/kdedup/kdedup/config"
	"github.com/kdedup/kdedup/connect"
	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/dedup/messageid"
)

// chooseID proposes, and asks.
func (f *initFlags) chooseID(ctx context.Context, p *plan, sample proposal.Sample) error {
	finds, err := findersOfPresets(ctx, sample)
	if err != nil {
		return err
	}
	sample.Finds = finds
	judgement := proposal.Judge(sample, time.Now(), nil)
	if p.schemas != nil {
		judgement.Refuse(func(c *proposal.Candidate) error {
			like := plan{input: p.input, schemas: p.schemas, id: messageID(c), ignore: c.Ignore}
			return p.schemas.fits(ctx, like.topic())
		})
	}
	if f.id.given() {
		return f.takeID(ctx, p, f.id.MessageID, sample, judgement)
	}
	var kinds []proposal.Kind // in front of the choices: one, or none
	if kind, known := sample.Kind(); known {
		kinds = append(kinds, kind)
	}
	if len(sample.Records) == 0 {
		fmt.Fprintf(f.talk, "\nThe topic %s is empty: there is nothing to see an ID in.\n", p.input)
	} else {
		f.show(sample, judgement, kinds)
	}
	usual := ""
	if len(kinds)+len(judgement.Choices) > 0 {
		usual = "1"
	}
	for {
		answer, err := f.ask(ctx, "Message ID: a number, or "+idForms, usual, "--id")
		if err != nil {
			return noID(err, sample, judgement)
		}
		err = f.answered(ctx, answer, p, sample, judgement, kinds)
		if !f.retry(err) {
			return err
		}
	}
}

// findersOfPresets ask the code of run: what init proposes finds the IDs of the records.
func findersOfPresets(
	ctx context.Context, sample proposal.Sample,
) (func(preset string, r *kgo.Record) bool, error) {
	extractors := make(map[string]*messageid.Extractor)
	for _, preset := range config.Presets() {
		t := config.DefaultTopic().WithPreset(preset)
		var registry messageid.Registry
		if from := t.MessageID.From; sample.Schemas != nil &&
			(from == config.FromDebezium || from == config.FromCockroachDB) &&
			sample.Schemas.Format() != config.FromJSONSchema {
			t.MessageID.Format, registry = sample.Schemas.Format(), sample.Schemas
		}
		e, err := connect.ExtractorOf(t, registry)
		if err == nil {
			err = e.Resolve(ctx, sample.Records)
		}
		if err != nil {
			return nil, fmt.Errorf("preset %s: %w", preset, err)
		}
		extractors[preset] = e
	}
	return func(preset string, r *kgo.Record) bool {
		_, missing := extractors[preset].Extract(r)
		return missing == dedup.NotMissing || missing == dedup.MissingExempt
	}, nil
}

// noID says why an ID is to be named where nobody can be asked.
func noID(err error, s proposal.Sample, j proposal.Judgement) error {
	if !errors.As(err, new(usageError)) {
		return err
	}
	why := "nothing on the newest records of " + s.Topic + " names a message"
	switch {
	case len(s.Records) == 0:
		why = "topic " + s.Topic + " is empty, so nothing shows where its message ID will stand"
	case j.Registry != "":
		why += ": " + j.Registry
	}
	return usageError{fmt.Errorf("%s: name the place by --id, as %s", why, idForms)}
}

// answered takes a number of the list, or a place.
func (f *initFlags) answered(
	ctx context.Context, answer string, p *plan, sample proposal.Sample, j proposal.Judgement,
	kinds []proposal.Kind,
) error {
	if n, err := strconv.Atoi(answer); err == nil {
		switch most := len(kinds) + len(j.Choices); {
		case n < 1 || n > most:
			return wrongAnswer{fmt.Errorf("must be 1 to %d, got %d", most, n)}
		case n <= len(kinds):
			p.takeKind(kinds[n-1])
		default:
			p.take(j.Choices[n-1-len(kinds)], j)
		}
		return nil
	}
	var id chosenID
	if err := id.Set(answer); err != nil {
		return wrongAnswer{fmt.Errorf("%w, got %q", err, answer)}
	}
	return f.takeID(ctx, p, id.MessageID, sample, j)
}

// takeID takes a place that somebody names, if records have it.
func (f *initFlags) takeID(
	ctx context.Context, p *plan, id config.MessageID, s proposal.Sample, j proposal.Judgement,
) error {
	if len(s.Records) == 0 {
		p.id = id
		p.seen = []string{"The topic was empty when this was written."}
		return nil
	}
	c, err := j.Of(proposal.Place{From: id.From, Name: id.Name, Path: id.Path, Part: id.Part})
	if err != nil {
		return usageError{wrongAnswer{fmt.Errorf("--id: %w", err)}}
	}
	if c.Have == 0 {
		err := fmt.Errorf("--id: %s is on none of the newest %s of %s", c,
			records(len(s.Records)), p.input)
		if len(j.Choices) > 0 {
			err = fmt.Errorf("%w; there is %s", err, j.Choices[0])
		}
		return usageError{wrongAnswer{err}}
	}
	p.take(c, j)
	if p.schemas != nil {
		if err := p.schemas.fits(ctx, p.topic()); err != nil {
			return usageError{wrongAnswer{fmt.Errorf("--id: %w", err)}}
		}
	}
	return nil
}

// takeKind takes what the preset stands for.
func (p *plan) takeKind(k proposal.Kind) {
	p.id = config.MessageID{Preset: k.Name, Format: k.Format}
	p.seen = []string{report.Capital(k.Seen()) + ".", "What the preset stands for, what repeats and what " +
		"stays open is in docs/recipes/" + k.Name + ".md."}
}

func (p *plan) take(c *proposal.Candidate, j proposal.Judgement) {
	p.id, p.ignore, p.trusted = messageID(c), c.Ignore, c.Trusted
	p.seen = []string{report.Capital(c.String()) + ": " + c.Seen() + "."}
	if c.Doubt != "" {
		p.seen = append(p.seen, c.Doubt)
	}
	p.tombstones = j.Tombstones > 0 && c.OfValue()
}

func records(n int) string {
	if n == 1 {
		return "record"
	}
	return report.Number(int64(n)) + " records"
}

const (
	mostChoices = 5
	mostRefused = 8
)

// show lists what may be the ID, and what is not.
func (f *initFlags) show(s proposal.Sample, j proposal.Judgement, kinds []proposal.Kind) {
	what := "the newest " + records(len(s.Records))
	if s.Whole {
		what = "all " + records(len(s.Records))
	}
	fmt.Fprintf(f.talk, "\nLooked at %s of %s", what, s.Topic)
	if s.Cut != "" {
		fmt.Fprintf(f.talk, " (%s)", s.Cut)
	}
	fmt.Fprintln(f.talk, ".")
	if len(kinds)+len(j.Choices) > 0 {
		fmt.Fprintln(f.talk, "\nThe message ID may be")
	}
	for i, kind := range kinds {
		fmt.Fprintf(f.talk, "  %d. what preset: %s stands for: %s\n", i+1, kind.Name, kind.Seen())
	}
	for i, c := range j.Choices[:min(len(j.Choices), mostChoices)] {
		fmt.Fprintf(f.talk, "  %d. %s: %s", len(kinds)+i+1, c, c.Seen())
		if name := report.KindName(c.Kind); name != "" && c.Kind != report.KindOther {
			fmt.Fprintf(f.talk, " (%s)", name)
		}
		fmt.Fprintln(f.talk)
		if c.Doubt != "" {
			fmt.Fprintf(f.talk, "     %s\n", c.Doubt)
		}
	}
	if len(j.Refused) > 0 {
		fmt.Fprintln(f.talk, "It is not")
	}
	for _, c := range j.Refused[:min(len(j.Refused), mostRefused)] {
		fmt.Fprintf(f.talk, "   - %s: %s\n", c, c.Refused)
	}
	fmt.Fprintln(f.talk)
}
