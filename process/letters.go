package process

import (
	"bytes"
	"cmp"
	"context"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/connect"
	"github.com/kdedup/kdedup/connect/logreader"
	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/dedup/messageid"
	"github.com/kdedup/kdedup/forwarder"
	"github.com/kdedup/kdedup/process/redrive"
	"github.com/kdedup/kdedup/process/redriving"
	"github.com/kdedup/kdedup/process/server"
)

const (
	lettersShown    = 50
	lettersLooked   = 2_000  // the newest records of the topic, where any letter is shown
	lettersSearched = 20_000 // where some are looked for
	lettersKept     = 2_000  // of those found, before the newest are taken
	marksLooked     = 20_000 // the newest that tell what was redriven
	shownBytes      = 4 << 10
	mostRedrives    = 3 // into the input, as the command's default
)

// processLetters has the page read letters and send them, as `kdedup redrive` does, by the store of
// the process: the embedded one belongs to it.
type processLetters struct{ p *Process }

// request is what is asked, of an entry that has such letters, and of whom.
func (l processLetters) request(
	q server.LetterQuery, into redrive.Into,
) (p *running, r redriving.Request, err error) {
	if p, err = l.p.whenRunning(); err != nil {
		return nil, r, err
	}
	c := p.Config()
	r = redriving.Request{Into: into, Duplicates: q.Duplicates, MaxRedrives: mostRedrives}
	if r.Topic, err = connect.FindTopic(c.Topics, q.Topic); err != nil {
		return nil, r, server.Senseless{Err: fmt.Errorf("the topic %w", err)}
	}
	if err := r.Check(c); err != nil {
		return nil, r, server.Senseless{Err: err}
	}
	known := func(reason string) bool { return strings.HasPrefix(reason, q.Why) }
	if reasons := l.Reasons(); !slices.ContainsFunc(reasons, known) {
		return nil, r, server.Senseless{Err: fmt.Errorf("no letter has the reason %q: they are %s",
			q.Why, strings.Join(reasons, ", "))}
	}
	return p, r, nil
}

// Reasons implements server.Letters.
func (processLetters) Reasons() []string {
	return append(redriving.Reasons(false), dedup.VerdictDuplicate.String())
}

// Unkept implements server.Letters.
func (l processLetters) Unkept() (inputs []string) {
	for _, t := range l.p.Config().Topics {
		if t.DuplicatesTopic == "" {
			inputs = append(inputs, t.Input)
		}
	}
	return inputs
}

// Find implements server.Letters.
func (l processLetters) Find(
	ctx context.Context, q server.LetterQuery,
) (found server.FoundLetters, err error) {
	p, r, err := l.request(q, redrive.Clean)
	if err != nil {
		return found, err
	}
	extractor, err := connect.ExtractorOf(r.Topic, p.schemas)
	if err != nil {
		return found, err
	}
	bounds := logreader.Bounds{MaxRecords: lettersLooked}
	if q.Why != "" || len(q.ID) > 0 {
		bounds.MaxRecords = lettersSearched
	}
	log, err := logreader.Describe(ctx, p.clusters.Output, r.Letters(), bounds)
	if err != nil {
		return found, err
	}
	found.From = r.Letters()
	connection := p.forwards.AdminOptions("kdedup-"+p.Config().Instance+"-letters", p.log)
	wanted := wantedLetters{query: q, input: r.Topic.Input, extractor: extractor,
		sent: p.earlier(ctx, connection, r.Marks()),
		prospect: redrive.Prospect{Passes: redriving.Passes(r.Topic), TTL: r.Topic.TTL,
			Apart: p.Config().Kafka.Output.Apart(), MaxRedrives: mostRedrives}}
	var all []foundLetter
	err = logreader.Read(ctx, connection, log, func(records []*kgo.Record) error {
		found.Looked += len(records)
		for _, record := range records {
			if one, ok := wanted.letter(ctx, record); ok {
				all = append(all, one)
			}
		}
		if len(all) > lettersKept {
			all = newest(all)
		}
		return nil
	})
	for _, one := range newest(all) {
		if one.copyOf != "" {
			p.judge(ctx, connect.ScopeOf(r.Topic, extractor.String()), &one)
		}
		found.All = append(found.All, one.Letter)
	}
	return found, err
}

// foundLetter is shown, with the ID of a dropped copy, whose owner is to be looked up.
type foundLetter struct {
	server.Letter
	copyOf dedup.ID
}

func newest(all []foundLetter) []foundLetter {
	slices.SortFunc(all, func(a, b foundLetter) int {
		return cmp.Or(b.At.Compare(a.At), cmp.Compare(b.Offset, a.Offset))
	})
	return all[:min(len(all), lettersShown)]
}

// earlier are the letters that were sent before. Without the right to read them none is marked, and
// a redrive refuses them all the same.
func (p *running) earlier(
	ctx context.Context, connection []kgo.Opt, marks string,
) redrive.Earlier {
	sent, err := redrive.ReadEarlier(ctx, p.clusters.Output, connection, marks, marksLooked)
	if err != nil && ctx.Err() == nil {
		p.log.Warn("the page does not tell which letters were sent before", "marks", marks,
			"error", err)
	}
	return sent
}

// judge leaves a dropped copy no way while a record of its content owns its ID.
func (p *running) judge(ctx context.Context, scope dedup.Scope, one *foundLetter) {
	answer, err := p.store.Lookup(ctx, scope, one.copyOf)
	switch {
	case err != nil:
		one.Ways = server.Ways{First: "The store does not tell who owns its ID: " + err.Error()}
	case answer.Outcome == dedup.Exists:
		one.Ways = server.Ways{First: redrive.OwnedStill()}
	}
}

// wantedLetters tells which records of a topic are looked for.
type wantedLetters struct {
	query     server.LetterQuery
	input     string
	extractor *messageid.Extractor
	sent      redrive.Earlier
	prospect  redrive.Prospect
}

func (w *wantedLetters) letter(
	ctx context.Context, record *kgo.Record,
) (one foundLetter, ok bool) {
	one.Letter = server.Letter{Partition: record.Partition, Offset: record.Offset,
		At: record.Timestamp}
	opened, err := forwarder.Open(record)
	source := record
	if one.Opaque = err != nil; !one.Opaque {
		source = opened.Record
		if source.Topic != w.input {
			return one, false
		}
		one.Source = fmt.Sprintf("%s[%d]@%d", source.Topic, source.Partition, source.Offset)
		one.Why, one.Differs = cmp.Or(opened.Reason, opened.Verdict), opened.Differs
		if one.Owner = opened.Owner; one.Owner != "" {
			one.Owner += " of the topic, or of another one of its scope"
		}
	}
	if w.query.Why != "" && !strings.HasPrefix(one.Why, w.query.Why) {
		return one, false
	}
	id, missing, err := dedup.ExtractNow(ctx, w.extractor, source)
	if has := err == nil && missing == dedup.NotMissing; has {
		one.ID = shownText([]byte(id))
	} else {
		id = ""
	}
	if len(w.query.ID) > 0 && (id == "" || id != w.extractor.Of(w.query.ID)) {
		return one, false
	}
	if !one.Opaque {
		w.ways(&one, opened, missing, err)
	}
	if one.Ways.Clean && opened.Verdict == dedup.VerdictDuplicate.String() {
		one.copyOf = dedup.ID(strings.Clone(string(id)))
	}
	one.Key, one.Value = shownText(source.Key), shownText(source.Value)
	one.Cut = len(source.Value) > shownBytes
	if opened.Stub {
		one.Value, one.Cut = "not kept: it was too large for the topic", false
	}
	for _, h := range source.Headers {
		one.Headers = append(one.Headers, server.Row{Name: h.Key, Text: shownText(h.Value)})
	}
	return one, true
}

// ways are those of a letter that was not sent yet.
func (w *wantedLetters) ways(
	one *foundLetter, opened forwarder.Letter, missing dedup.MissingReason, unresolved error,
) {
	if sent, was := w.sent.Of(opened.Record); was {
		one.Sent = fmt.Sprintf("sent to %s, %s", sent.Into, sent.At.UTC().Format(time.DateTime)+"Z")
		return
	}
	if unresolved != nil {
		one.Ways.First = "its ID is not known while the schema registry does not answer: " +
			unresolved.Error()
		return
	}
	prospect := w.prospect
	prospect.Letter, prospect.Missing = opened, missing
	ways := prospect.Ways(time.Now())
	ways.First = inWordsOfThePage.Replace(ways.First)
	one.Ways = server.Ways(ways)
}

// shownText is the beginning of some bytes, in hexadecimal digits if they are no text.
func shownText(text []byte) string {
	cut := text[:min(len(text), shownBytes)]
	valid := bytes.ToValidUTF8(cut, nil)
	switch {
	case text == nil:
		return "null"
	case len(cut)-len(valid) < utf8.UTFMax && (len(cut) < len(text) || len(cut) == len(valid)):
		return string(valid)
	}
	return "hexadecimal: " + hex.EncodeToString(cut)
}

// Redrive implements server.Letters.
func (l processLetters) Redrive(
	ctx context.Context, q server.LetterQuery, one server.Redrive,
) (said string, sent bool, err error) {
	into := redrive.Clean
	if one.Input {
		into = redrive.Input
	}
	p, r, err := l.request(q, into)
	if err != nil {
		return "", false, err
	}
	r.Conflicts = one.Conflicts
	r.Select = redrive.Selection{Partitions: []int32{one.Partition},
		Offsets: []redrive.OffsetRange{{First: one.Offset, Last: one.Offset}}}
	task, err := redriving.Open(ctx, p.Config(), r, p.lend, p.log)
	if err != nil {
		return "", false, err
	}
	defer task.Close()
	found, err := task.Scan(ctx)
	if err != nil {
		return "", false, err
	}
	if found.Letters == 0 {
		return "", false, server.Senseless{Err: fmt.Errorf("there is no letter of %s at %s[%d]@%d",
			r.Topic.Input, task.From(), one.Partition, one.Offset)}
	}
	report, err := task.Run(ctx, found, func(line string) { p.log.Info(line) })
	if err != nil {
		return "", false, fmt.Errorf("redrive %s[%d]@%d: %w", task.From(), one.Partition,
			one.Offset, err)
	}
	word, sent := report.Single()
	said = fmt.Sprintf("%s[%d]@%d: %s", task.From(), one.Partition, one.Offset,
		inWordsOfThePage.Replace(word))
	message := "a redrive from the page was refused"
	if sent {
		message = "a letter was redriven from the page"
	}
	p.log.Info(message, "topic", r.Topic.Input, "said", said)
	return said, sent, nil
}

// inWordsOfThePage names its buttons, and the fields of its form, in the place of flags.
var inWordsOfThePage = strings.NewReplacer(
	"--into clean --conflicts forwards", "\"as another record of its ID\" (into=clean-conflict) "+
		"forwards",
	"--into clean", "send it to the clean topic",
	"raise --max-redrives", "send it by kdedup redrive --max-redrives",
	"--timestamp now", "kdedup redrive --timestamp now",
)

// lend has a redrive use the store of the process, and not close it.
func (p *running) lend(
	context.Context, map[dedup.ID]bool,
) (dedup.Store, func() error, error) {
	return p.store, func() error { return nil }, nil
}
