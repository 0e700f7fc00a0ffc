package messageid_test

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/dedup/messageid"
)

// sent is a change as a connector sends it.
type sent struct {
	op, before, after string   // JSON; empty: null
	source            []string // members of the source, as JSON
	others            []string // members of the envelope
	key               string
	wrapped           bool // with schemas
	first             bool // source stands in front
}

func (s sent) record() *kgo.Record {
	orNull := func(text string) string {
		if text == "" {
			return "null"
		}
		return text
	}
	members := append([]string{`"before":` + orNull(s.before), `"after":` + orNull(s.after),
		`"source":{` + strings.Join(s.source, ",") + `}`, `"op":"` + s.op + `"`}, s.others...)
	if s.first {
		members[0], members[2] = members[2], members[0]
	}
	value, key := "{"+strings.Join(members, ",")+"}", s.key
	if s.wrapped {
		value = `{"schema":{"type":"struct","fields":[]},"payload":` + value + `}`
		key = `{"schema":{"type":"struct"},"payload":` + key + `}`
	}
	r := &kgo.Record{Value: []byte(value)}
	if s.key != "" {
		r.Key = []byte(key)
	}
	return r
}

func changeID(t testing.TB, e *messageid.Extractor, r *kgo.Record) dedup.ID {
	t.Helper()
	id, missing := e.Extract(r)
	if missing != dedup.NotMissing {
		t.Fatalf("no ID, %v: %s", missing, r.Value)
	}
	return id
}

// What the sources of connectors say of the place of a change, and of themselves.
var sources = map[string]struct{ place, own []string }{
	"postgresql": {[]string{"lsn"}, []string{"txId", "xmin", "ts_ms", "ts_us", "ts_ns"}},
	"mysql":      {[]string{"gtid", "server_id", "file", "pos", "row"}, []string{"thread"}},
	"mariadb":    {[]string{"gtid", "server_id", "file", "pos", "row"}, []string{"query", "ts_us"}},
	"sqlserver":  {[]string{"commit_lsn", "change_lsn", "event_serial_no"}, []string{"ts_ms"}},
	"oracle":     {[]string{"scn", "rs_id", "ssn", "redo_thread"}, []string{"commit_scn", "ts_ns"}},
	"mongodb":    {[]string{"ts_ms", "ord", "collection", "lsid", "txnNumber"}, nil},
	"a new one":  {[]string{"ts_ms", "position", "shard"}, nil},
}

// Random changes: two are one message if, and only if, all that identifies them is equal, whatever
// else the connector writes, in whatever order.
func TestAChangeIsKnownByWhatIdentifiesIt(t *testing.T) {
	e := mustExtractor(t, messageid.Source{From: messageid.FromDebezium})
	random := rand.New(rand.NewPCG(46, 8))
	values := []string{`1`, `2`, `"1"`, `""`, "null", `"a,b"`, `{"a":1}`}
	any := func() string { return values[random.IntN(len(values))] }
	for connector, fields := range sources {
		seen := make(map[dedup.ID]string)
		known := make(map[string]dedup.ID)
		for range 20_000 {
			s := sent{op: []string{"c", "u", "d", "r", "t"}[random.IntN(5)], key: `{"id":` +
				any() + `}`, wrapped: random.IntN(2) == 0, first: random.IntN(2) == 0}
			for _, row := range []*string{&s.before, &s.after} {
				if random.IntN(3) > 0 {
					*row = `{"id":` + any() + `}`
				}
			}
			identity := []string{s.op, s.key, s.before, s.after}
			add := func(name, value string) {
				s.source = append(s.source, `"`+name+`":`+value)
			}
			for _, name := range fields.place {
				value := any()
				if len(s.source) == 0 { // nobody leaves the first one out
					value = values[random.IntN(2)]
				}
				if identity = append(identity, value); value != "null" || random.IntN(2) == 0 {
					add(name, value)
				} else if fields.own == nil {
					identity[len(identity)-1] = "nothing" // where all of the source counts
				}
			}
			for _, name := range append([]string{"version", "sequence", "snapshot"},
				fields.own...) {
				if random.IntN(2) == 0 {
					add(name, any())
				}
			}
			add("connector", `"`+connector+`"`)
			add("name", `"shop"`)
			for _, name := range []string{"transaction", "ts_ms", "ts_us", "ts_ns"} {
				if random.IntN(2) == 0 {
					s.others = append(s.others, `"`+name+`":`+any())
				}
			}
			random.Shuffle(len(s.source), func(i, j int) {
				s.source[i], s.source[j] = s.source[j], s.source[i]
			})
			all := strings.Join(identity, "|")
			if fields.own != nil && connector != "sqlserver" && connector != "postgresql" &&
				connector != "oracle" && !hasMember(s.source, "file") {
				continue // then all of the source counts
			}
			id := changeID(t, e, s.record())
			if other, is := seen[id]; is && other != all {
				t.Fatalf("%s: one ID for\n%s\n%s", connector, other, all)
			}
			if was, is := known[all]; is && was != id {
				t.Fatalf("%s: two IDs for %s", connector, all)
			}
			seen[id], known[all] = all, id
		}
		if len(known) < 100 {
			t.Errorf("%s: %d different changes", connector, len(known))
		}
	}
}

func hasMember(members []string, name string) bool {
	for _, m := range members {
		if strings.HasPrefix(m, `"`+name+`":`) && !strings.HasSuffix(m, ":null") {
			return true
		}
	}
	return false
}

func TestWhichConnectorSendsAChangeCountsUnlessItIsSaid(t *testing.T) {
	for _, connector := range []string{"postgresql", "mongodb"} {
		of := func(name string) *kgo.Record {
			return sent{op: "u", key: "1", after: `{"a":1}`, source: []string{`"connector":"` +
				connector + `"`, `"name":"` + name + `"`, `"lsn":7`, `"ord":1`}}.record()
		}
		strict := mustExtractor(t, messageid.Source{From: messageid.FromDebezium})
		lax := mustExtractor(t, messageid.Source{From: messageid.FromDebezium, AnySource: true})
		if changeID(t, strict, of("a")) == changeID(t, strict, of("b")) {
			t.Errorf("%s: two connectors send one change", connector)
		}
		if changeID(t, lax, of("a")) != changeID(t, lax, of("b")) {
			t.Errorf("%s: with any_source, they send two", connector)
		}
		if strict.String() == lax.String() {
			t.Error("both have one name")
		}
	}
}

// MongoDB's after is what a look-up found when the change was read.
func TestAnUpdateOfMongoDBIsKnownWithoutWhatALookUpFound(t *testing.T) {
	e := mustExtractor(t, messageid.Source{From: messageid.FromDebezium})
	of := func(after, update string) dedup.ID {
		return changeID(t, e, sent{op: "u", key: "1", after: after,
			source: []string{`"connector":"mongodb"`, `"ts_ms":5`, `"ord":1`},
			others: []string{`"updateDescription":` + update}}.record())
	}
	if of(`"{\"a\":1}"`, `{"updatedFields":"x"}`) != of(`"{\"a\":2}"`, `{"updatedFields":"x"}`) {
		t.Error("another look-up makes another change")
	}
	if of(`"1"`, `{"updatedFields":"x"}`) == of(`"1"`, `{"updatedFields":"y"}`) ||
		of(`"1"`, "null") == of(`"2"`, "null") {
		t.Error("two changes are one")
	}
}

func FuzzChange(f *testing.F) {
	f.Add([]byte(`{"schema":{},"payload":{"op":"c","source":{"connector":"mysql","file":"a"}}}`))
	f.Add([]byte(`{"op":"c","source":{"connector":"x","a":[1,{}]},"before":null}`))
	f.Add([]byte(`{"\u006fp":"c","source":{"connector":""}}`))
	e := mustExtractor(f, messageid.Source{From: messageid.FromDebezium})
	hash := mustExtractor(f, messageid.Source{From: "value_hash", Ignore: []string{"a.b", "c"}})
	f.Fuzz(func(t *testing.T, value []byte) {
		r := &kgo.Record{Key: value, Value: value, Headers: headers("id", string(value))}
		id, missing := e.Extract(r)
		if again, same := e.Extract(r); again != id || same != missing {
			t.Fatal("it differs from itself")
		}
		if missing == dedup.NotMissing && !messageid.WholeJSON(value) {
			t.Fatal("what is no document is a change")
		}
		hash.Extract(r)
		messageid.IsTombstone(value)
		messageid.Respelled(dedup.ID(value))
	})
}

// BenchmarkChange compares the preset of debezium with the hash that it was, on an update that a
// connector sent, of a row with a note of 300 letters.
func BenchmarkChange(b *testing.B) {
	r := connectorRuns(b)["postgresql"].First[1].record()
	r.Value = bytes.ReplaceAll(r.Value, []byte(`"note":"x"`),
		[]byte(`"note":"`+strings.Repeat("x", 300)+`"`))
	if n := len(r.Value); n < 1100 || n > 1300 {
		b.Fatalf("the envelope has %d bytes", n)
	}
	own := []string{"ts_ms", "ts_us", "ts_ns", "transaction", "source.version", "source.sequence",
		"source.snapshot", "payload.ts_ms", "payload.ts_us", "payload.ts_ns", "payload.transaction",
		"payload.source.version", "payload.source.sequence", "payload.source.snapshot"}
	for _, c := range []struct {
		name    string
		source  messageid.Source
		content messageid.Content
	}{
		{"now", messageid.Source{From: messageid.FromDebezium}, messageid.Content{None: true}},
		{"before", messageid.Source{From: "value_hash", Ignore: own},
			messageid.Content{Ignore: own}},
	} {
		e, err := mustExtractor(b, c.source).With(messageid.Rules{Fingerprint: c.content,
			Tombstones: true})
		if err != nil {
			b.Fatal(err)
		}
		prints := e.Fingerprinter()
		b.Run(c.name, func(b *testing.B) {
			b.SetBytes(int64(len(r.Value)))
			b.ReportAllocs()
			for b.Loop() {
				if _, missing := e.Extract(r); missing != dedup.NotMissing {
					b.Fatal(missing)
				}
				prints.Of(r)
			}
		})
	}
}
