package messageid_test

import (
	"fmt"
	"regexp"
	"strconv"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/dedup/messageid"
)

var sourceTime = regexp.MustCompile(`("name":"[^"]*","ts_ms":)(\d+)`)

// aDayLater is a change of a database that the same script made again, at the place that it had.
func aDayLater(t *testing.T, r *kgo.Record) *kgo.Record {
	t.Helper()
	later := *r
	later.Value = sourceTime.ReplaceAllFunc(r.Value, func(text []byte) []byte {
		parts := sourceTime.FindSubmatch(text)
		ms, err := strconv.Atoi(string(parts[2]))
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Appendf(nil, "%s%d", parts[1], ms+86_400_000)
	})
	return &later
}

// When a change was committed is no part of its ID. As what counts it tells the change of another
// database from a copy, and is the same in every copy.
func TestADatabaseMadeAgainIsToldByTheTimesOfItsChanges(t *testing.T) {
	runs := connectorRuns(t)
	for _, name := range []string{"postgresql", "mariadb"} {
		e := apart(t, messageid.Source{From: messageid.FromDebezium})
		e, err := e.With(messageid.Rules{Tombstones: true,
			Fingerprint: messageid.Content{Only: []string{"source.ts_ms"}}})
		if err != nil {
			t.Fatal(err)
		}
		prints := e.Fingerprinter()
		claimed := make(map[string]dedup.Fingerprint)
		of := func(r *kgo.Record) (at string, print dedup.Fingerprint, is bool) {
			id, missing := e.Extract(r)
			return r.Topic + " " + string(id), prints.Of(r), missing == dedup.NotMissing
		}
		for _, c := range runs[name].First {
			if at, print, is := of(c.record()); is {
				if was, known := claimed[at]; known && was != print {
					t.Errorf("%s: another time in %s", name, *c.Value)
				}
				claimed[at] = print
			}
		}
		copies, again := 0, 0
		for _, c := range runs[name].Again {
			at, print, is := of(c.record())
			was, known := claimed[at]
			if !is || !known {
				continue
			}
			if copies++; was != print {
				t.Errorf("%s: a copy is a conflict: %s", name, *c.Value)
			}
			at, print, _ = of(aDayLater(t, c.record()))
			if was, known := claimed[at]; known && was != print {
				again++
			}
		}
		if again == 0 || again != copies {
			t.Errorf("%s: %d of %d changes of the new database are conflicts", name, again, copies)
		}
	}
}
