package e2e_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kdedup/kdedup/internal/crashpoint"
)

const (
	exactlyOnce = "exactly_once"
	atLeastOnce = "at_least_once"
	cassandra   = "cassandra"
	embedded    = "embedded"
	postgres    = "postgres"
	claimLog    = "kafka"
)

// repeats says how many messages a crash may repeat. With exactly_once it is always never.
type repeats int

const (
	never  repeats = iota
	may            // what was sent before the kill
	always         // the batch was on the clean topic, and no fence behind it
)

func (r repeats) String() string { return [...]string{"none", "any number", "some"}[r] }

func (r repeats) allow(n int) bool { return r == may || (n > 0) == (r == always) }

// crashPoint is what is known about a point. docs/guarantees.md has the same as a table.
type crashPoint struct {
	name     string
	delivery string  // the only one that has it; empty: both
	store    string  // likewise
	later    int     // another time, besides the first, at which it is reached
	after    string  // reached once per process: come to it again after a crash at this point
	repeats  repeats // at the first time, with at_least_once
	again    repeats // at the other
	renews   bool    // only copies that renew come to it
	apart    bool    // only exactly_once onto another cluster comes to it
}

var crashPoints = []crashPoint{
	{name: "predecessor-fenced", after: "end-txn-unsent", delivery: exactlyOnce},
	{name: "predecessor-over", after: "txn-offset-commit-sent", delivery: exactlyOnce},
	{name: "partitions-assigned", after: "batch-forwarded", delivery: atLeastOnce, again: always},
	{name: "partitions-assigned", after: "end-txn-sent", delivery: exactlyOnce},
	{name: "partitions-begun", after: "end-txn-sent", delivery: exactlyOnce, apart: true},
	{name: "fences-unread", after: "batch-committed"},
	{name: "fences-read", after: "fences-acknowledged", delivery: atLeastOnce},
	{name: "fences-read", after: "end-txn-unsent", delivery: exactlyOnce},
	{name: "init-producer-id-unsent", after: "transaction-begun", delivery: exactlyOnce},
	{name: "init-producer-id-sent", after: "end-txn-unsent", delivery: exactlyOnce},
	{name: "init-producer-id-answered", after: "end-txn-sent", delivery: exactlyOnce},
	{name: "init-producer-id-unsent", delivery: atLeastOnce},
	{name: "init-producer-id-sent", delivery: atLeastOnce},
	{name: "init-producer-id-answered", delivery: atLeastOnce},
	{name: "batch-polled", later: 3},
	{name: "bucket-claimed", store: cassandra, later: 100},
	{name: "bucket-renewed", store: cassandra, later: 20, renews: true},
	{name: "rows-inserted", store: postgres, later: 3},
	{name: "blocks-appended", store: claimLog, later: 3},
	{name: "block-read-back", store: claimLog, later: 20},
	{name: "claims-written", store: embedded, later: 3},
	{name: "claims-synced", store: embedded, later: 3},
	{name: "batch-claimed", later: 3},
	{name: "batch-planned", later: 3},
	{name: "transaction-begun", delivery: exactlyOnce, later: 3},
	{name: "batch-begun", later: 3},
	{name: "record-produced", later: 700, repeats: may, again: may},
	{name: "batch-produced", later: 3, repeats: may, again: may},
	{name: "produce-unsent", later: 4, again: may},
	{name: "produce-sent", later: 4, repeats: always, again: may},
	{name: "produce-answered", later: 4, repeats: always, again: may},
	{name: "batch-forwarded", later: 3, repeats: always, again: always},
	{name: "fences-acknowledged", delivery: atLeastOnce, later: 3},
	{name: "offset-commit-unsent", delivery: atLeastOnce, later: 3},
	{name: "offset-commit-sent", delivery: atLeastOnce, later: 3},
	{name: "offset-commit-answered", delivery: atLeastOnce, later: 3},
	{name: "txn-offset-commit-unsent", delivery: exactlyOnce, later: 3},
	{name: "txn-offset-commit-sent", delivery: exactlyOnce, later: 3},
	{name: "txn-offset-commit-answered", delivery: exactlyOnce, later: 3},
	{name: "end-txn-unsent", delivery: exactlyOnce, later: 3},
	{name: "end-txn-sent", delivery: exactlyOnce, later: 3},
	{name: "end-txn-answered", delivery: exactlyOnce, later: 3},
	{name: "transaction-ended", delivery: exactlyOnce, later: 3},
	{name: "batch-committed", later: 3},
	{name: "hints-unsent", delivery: exactlyOnce, apart: true},
	{name: "hints-answered", delivery: exactlyOnce, apart: true},
	{name: "leave-group-unsent"},
	{name: "leave-group-sent"},
	{name: "leave-group-answered"},
}

// atShutdown are the points that a process comes to after SIGTERM.
var atShutdown = map[string]bool{"leave-group-unsent": true, "leave-group-sent": true,
	"leave-group-answered": true}

func TestEveryCrashPointHasACase(t *testing.T) {
	var names []string
	for _, p := range crashPoints {
		names = append(names, p.name)
	}
	slices.Sort(names)
	if diff := cmp.Diff(crashpoint.Points(), slices.Compact(names)); diff != "" {
		t.Errorf("-in the product +in the table:\n%s", diff)
	}
}

// crashCases are the cases on a store: of each point and delivery those that choose leaves.
func crashCases(store string, choose func([]crashCase) []crashCase) (cases []crashCase) {
	for _, p := range crashPoints {
		if p.store != "" && p.store != store || p.apart {
			continue
		}
		for _, delivery := range []string{exactlyOnce, atLeastOnce} {
			if p.delivery == "" || p.delivery == delivery {
				cases = append(cases, choose(p.cases(delivery))...)
			}
		}
	}
	return cases
}

// crashCasesApart are those of exactly_once onto another cluster, in an embedded store. They leave
// out the points that no transaction and no take-over is at.
func crashCasesApart(choose func([]crashCase) []crashCase) (cases []crashCase) {
	for _, p := range crashPoints {
		if p.store == "" && p.delivery != atLeastOnce {
			cases = append(cases, choose(p.cases(exactlyOnce))...)
		}
	}
	return cases
}

func all(cases []crashCase) []crashCase { return cases }

// last is the one that finds claims, fences and offsets of an earlier batch, if there is such a
// one.
func last(cases []crashCase) []crashCase { return cases[len(cases)-1:] }

// cases are one or two: the first time, and another.
func (p crashPoint) cases(delivery string) []crashCase {
	first, again := p.repeats, p.again
	if delivery == exactlyOnce {
		first, again = never, never
	}
	cases := []crashCase{{delivery, []crash{{p.name, 1}}, first, p.renews}}
	switch {
	case p.later > 0:
		cases = append(cases, crashCase{delivery, []crash{{p.name, p.later}}, again, p.renews})
	case p.after != "":
		cases = append(cases, crashCase{delivery, []crash{{p.after, 2}, {p.name, 1}}, again,
			p.renews})
	}
	return cases
}
