package messageid_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/dedup/messageid"
)

// connectorRun is what a connector sent: a snapshot, changes, and those changes once more after it
// had begun with older offsets.
type connectorRun struct {
	Name                   string
	Snapshot, First, Again []connectorRecord
}

type connectorRecord struct {
	Topic      string
	Key, Value *string
	Headers    map[string]string
}

func (c connectorRecord) record() *kgo.Record {
	r := &kgo.Record{Topic: c.Topic}
	if c.Key != nil {
		r.Key = []byte(*c.Key)
	}
	if c.Value != nil {
		r.Value = []byte(*c.Value)
	}
	for name, value := range c.Headers {
		r.Headers = append(r.Headers, kgo.RecordHeader{Key: name, Value: []byte(value)})
	}
	return r
}

func connectorRuns(t testing.TB) map[string]connectorRun {
	t.Helper()
	data, err := os.ReadFile("testdata/debezium.json")
	if err != nil {
		t.Fatal(err)
	}
	var file struct{ Runs []connectorRun }
	if err := json.Unmarshal(data, &file); err != nil {
		t.Fatal(err)
	}
	runs := make(map[string]connectorRun)
	for _, r := range file.Runs {
		runs[r.Name] = r
	}
	return runs
}

// counted says what becomes of the records of a run.
type counted struct {
	Passed  int // changes
	Lost    int // changes that have the ID of another one
	Dropped int // copies
	Doubled int // copies with an ID of their own
	NoID    int
}

func (r connectorRun) count(e *messageid.Extractor) (n counted) {
	seen := make(map[string]bool)
	for i, records := range [][]connectorRecord{r.Snapshot, r.First, r.Again} {
		for _, c := range records {
			id, missing := e.Extract(c.record())
			at := c.Topic + " " + string(id)
			switch {
			case missing == dedup.MissingTombstone:
				continue
			case missing != dedup.NotMissing:
				n.NoID++
				continue
			case i < 2 && seen[at]:
				n.Lost++
			case i < 2:
				n.Passed++
			case seen[at]:
				n.Dropped++
			default:
				n.Doubled++
			}
			seen[at] = true
		}
	}
	return n
}

func apart(t *testing.T, s messageid.Source) *messageid.Extractor {
	t.Helper()
	e, err := mustExtractor(t, s).With(messageid.Rules{Tombstones: true})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func fieldsOf(paths ...string) messageid.Source {
	s := messageid.Source{From: "composite", Parts: []messageid.Source{{From: "key"}}}
	for _, path := range paths {
		s.Parts = append(s.Parts, messageid.Source{From: "json", Path: path})
	}
	return s
}

// Rows of a table are updated there and back, many by one statement, one gets another primary key,
// and a table without a key has equal rows.
func TestChangesOfRealConnectorsPassOnce(t *testing.T) {
	runs := connectorRuns(t)
	change := messageid.Source{From: messageid.FromDebezium}
	for _, c := range []struct {
		name, run string
		source    messageid.Source
		want      counted
	}{
		// COPY writes many rows at one position, and two of them were equal, without a key
		{"a change of PostgreSQL", "postgresql", change, counted{23, 1, 21, 0, 0}},
		{"a change of MariaDB", "mariadb", change, counted{23, 0, 18, 0, 0}},
		{"a change with its schema, and heartbeats", "schemas", change, counted{5, 0, 4, 0, 2}},
		{"rows by their values", "flat", messageid.Source{From: "value_hash"},
			counted{9, 3, 9, 0, 0}},
		{"rows by the place that was added", "flatfields", fieldsOf("__op", "__lsn"),
			counted{12, 0, 9, 0, 0}},
		{"the place alone", "mariadb", messageid.Source{From: "composite",
			Parts: fieldsOf("source.file", "source.pos", "source.row").Parts[1:]},
			counted{19, 4, 18, 0, 0}},
	} {
		if got := runs[c.run].count(apart(t, c.source)); got != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
}

func TestRowsWithoutTheirChangesAreKnown(t *testing.T) {
	for name, run := range connectorRuns(t) {
		for _, c := range run.First {
			r := c.record()
			if want := strings.HasPrefix(name, "flat") && !messageid.IsTombstone(r.Value); want !=
				messageid.IsFlat(r) {
				t.Errorf("%s: %s is flat: %v", name, r.Value, !want)
			}
		}
	}
	for _, value := range []string{`{"id":1}`, `{"__opinion":"x"}`, `[]`, `x`, `{"__op":1}`} {
		if messageid.IsFlat(&kgo.Record{Value: []byte(value)}) {
			t.Errorf("%s is flat", value)
		}
	}
}
