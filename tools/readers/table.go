package main

import (
	"context"
	"fmt"
	"os"
	"strings"
)

// row is what one client did.
type row struct {
	client             client
	version            string
	committed, usually output   // on the topic with transactions
	failed             []string // codecs
}

// read returns an error where a client heard nothing: that is no result.
func (t *topics) read(ctx context.Context, broker, work string, c client) (row, error) {
	r := row{client: c}
	r.usually = c.read(ctx, work, broker, t.transactions, "default")
	r.committed = c.read(ctx, work, broker, t.transactions, "committed")
	r.version = r.committed.version
	for _, o := range []output{r.usually, r.committed} {
		if strings.Contains(o.err, silent) {
			return r, fmt.Errorf("%s hears nothing of %s", c.name, t.transactions)
		}
	}
	for _, codec := range t.codecs {
		o := c.read(ctx, work, broker, codec.topic, "default")
		if strings.Contains(o.err, silent) {
			return r, fmt.Errorf("%s hears nothing of %s", c.name, codec.topic)
		}
		if n := count(o.values, func(v string) bool {
			return strings.HasPrefix(v, codec.name)
		}); n != records {
			fmt.Fprintf(os.Stderr, "%s with %s: %d of %d records; %s\n", c.name, codec.name, n,
				records, o.err)
			r.failed = append(r.failed, codec.name)
		}
	}
	return r, nil
}

func count(values []string, is func(string) bool) (n int) {
	for _, v := range values {
		if is(v) {
			n++
		}
	}
	return n
}

// aborted are the values of aborted transactions, and foreign those that nobody wrote: markers.
func (o output) aborted() int {
	return count(o.values, func(v string) bool { return strings.HasPrefix(v, "aborted") })
}

func (o output) foreign() int {
	return count(o.values, func(v string) bool {
		return v != "END" && !strings.HasPrefix(v, "aborted") && !strings.HasPrefix(v, "committed")
	})
}

const (
	abortedRecords   = 2 * records
	committedRecords = 3 * records
)

// right reports whether exactly_once holds for the client.
func (o output) right() bool {
	return o.aborted() == 0 && o.foreign() == 0 && o.err == "" &&
		len(o.values) == committedRecords+1
}

// words tell what came of a topic with aborted transactions.
func (o output) words() string {
	switch {
	case o.err != "" && len(o.values) == 0:
		return "fails: " + strings.TrimPrefix(o.err, "exit status 1: ")
	case o.right():
		return "hidden"
	}
	var words []string
	if n := o.aborted(); n > 0 {
		words = append(words, fmt.Sprintf("**%d of %d handed out**", n, abortedRecords))
	}
	if n := o.foreign(); n > 0 {
		words = append(words, fmt.Sprintf("**%d markers as messages**", n))
	}
	if o.err != "" {
		words = append(words, "then "+o.err)
	}
	if n := len(o.values) - o.aborted() - o.foreign() - 1; n != committedRecords && o.err == "" {
		words = append(words, fmt.Sprintf("%d of %d committed ones", n, committedRecords))
	}
	return strings.Join(words, ", ")
}

// level is what the client does unless it is told otherwise.
func (r row) level() string {
	switch {
	case r.usually.err != "":
		return "fails"
	case r.usually.right():
		return "read committed"
	case r.usually.aborted() > 0:
		return "read uncommitted"
	}
	return r.usually.words()
}

func (r row) fits() string {
	if r.committed.right() {
		return "yes"
	}
	return "**no**: `delivery: at_least_once`"
}

func table(rows []row, kafka string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Kafka %s; %d committed records, %d aborted ones.\n\n", kafka,
		committedRecords, abortedRecords)
	b.WriteString("| client | version | used from | by default | what has it read committed | " +
		"aborted records and markers then | codecs it lacks | `exactly_once` |\n" +
		"|---|---|---|---|---|---|---|---|\n")
	for _, r := range rows {
		lacks := "none"
		if len(r.failed) > 0 {
			lacks = strings.Join(r.failed, ", ")
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s | %s | %s |\n", r.client.name, r.version,
			r.client.kind, r.level(), r.client.set, r.committed.words(), lacks, r.fits())
	}
	return strings.ReplaceAll(b.String(), "\n\n\n", "\n\n")
}
