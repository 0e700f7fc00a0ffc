package messageid_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/dedup/messageid"
)

// rowChange is a change of a row that is made again and again of few states.
type rowChange struct {
	id, from, to int
	at           int // in the log of the database, another one for each change
	sent         int // when its record was made, another one for each record
}

// forms write a change as the producers do.
var forms = map[string]func(c rowChange) string{
	"maxwell": func(c rowChange) string {
		return fmt.Sprintf(`{"database":"shop","table":"t","type":"update","ts":17,"xid":%d,`+
			`"xoffset":%d,"data":{"id":%d,"s":%d},"old":{"s":%d},"push_timestamp":%d}`, c.at/3,
			c.at%3, c.id, c.to, c.from, c.sent)
	},
	"canal_json": func(c rowChange) string {
		return fmt.Sprintf(`{"id":%d,"database":"shop","table":"t","pkNames":["id"],"isDdl":false,`+
			`"type":"UPDATE","es":17000,"ts":%[1]d,"sql":"","data":[{"id":"%d","s":"%d"}],`+
			`"old":[{"s":"%d"}],"gtid":"u:%d"}`, c.sent, c.id, c.to, c.from, c.at)
	},
	"ticdc": func(c rowChange) string {
		if c.at%2 == 0 {
			return fmt.Sprintf(`{"payload":{"ts_ms":%d,"transaction":null,"op":"u","before":`+
				`{"id":%d,"s":%d},"after":{"id":%[2]d,"s":%[4]d},"source":{"connector":"TiCDC",`+
				`"name":"default","ts_ms":17,"db":"shop","table":"t","commit_ts":%[5]d,`+
				`"cluster_id":"default"}}}`, c.sent, c.id, c.from, c.to, c.at)
		}
		return fmt.Sprintf(`{"id":0,"database":"shop","table":"t","isDdl":false,"type":"UPDATE",`+
			`"es":17000,"ts":%d,"sql":"","data":[{"id":"%d","s":"%d"}],"old":[{"s":"%d"}],`+
			`"_tidb":{"commitTs":%d}}`, c.sent, c.id, c.to, c.from, c.at)
	},
	"cockroachdb": func(c rowChange) string {
		switch c.at % 3 {
		case 0:
			return fmt.Sprintf(`{"id":%d,"s":%d,"__crdb__":{"updated":"17.%010d"}}`, c.id, c.to, c.at)
		case 1:
			return fmt.Sprintf(`{"after":{"id":%d,"s":%d},"op":"u","ts_ns":%d,"source":{"job_id":"1",`+
				`"table_name":"t","changefeed_sink":"kafka","ts_hlc":"17.%010d"}}`, c.id, c.to,
				c.sent, c.at)
		}
		return fmt.Sprintf(`{"after":{"id":%d,"s":%d},"updated":"17.%010d"}`, c.id, c.to, c.at)
	},
	"mongodb": func(c rowChange) string {
		event := fmt.Sprintf(`{"_id":{"_data":"82%08X"},"operationType":"update","fullDocument":`+
			`{"_id":%d,"s":%d,"read":%d},"ns":{"db":"shop","coll":"t"}}`, c.at, c.id, c.to, c.sent)
		switch c.at % 3 {
		case 0:
			return fmt.Sprintf("%q", event)
		case 1:
			return fmt.Sprintf(`{"schema":{"type":"string"},"payload":%q}`, event)
		}
		return event
	},
	"dms": func(c rowChange) string {
		return fmt.Sprintf(`{"data":{"id":%d,"s":%d},"metadata":{"timestamp":"%d","record-type":`+
			`"data","operation":"update","schema-name":"shop","table-name":"t","transaction-id":%d,`+
			`"transaction-record-id":%d,"prev-transaction-id":%[3]d,"commit-timestamp":"17",`+
			`"stream-position":"%[6]d"}}`, c.id, c.to, c.sent, c.at/3, c.at%3, c.at/2)
	},
}

// TestChangesOfEachProducerPassOnce has rows that go there and back, and producers that send again
// what they have sent since some earlier place.
func TestChangesOfEachProducerPassOnce(t *testing.T) {
	for from, form := range forms {
		for seed := range uint64(20) {
			random := rand.New(rand.NewPCG(seed, 46))
			e := mustExtractor(t, messageid.Source{From: from})
			var changes []rowChange
			states := make(map[int]int)
			for at := range 300 {
				id := random.IntN(5)
				c := rowChange{id: id, from: states[id], to: random.IntN(2), at: at}
				states[id] = c.to
				changes = append(changes, c)
			}
			owner := make(map[dedup.ID]int)
			sent := 0
			for at := 0; at < len(changes); at++ {
				sent++
				c := changes[at]
				c.sent = sent
				r := &kgo.Record{Key: fmt.Appendf(nil, `{"id":%d}`, c.id), Value: []byte(form(c))}
				id, missing := extract(t, e, r)
				if missing != dedup.NotMissing {
					t.Fatalf("%s: %s has no ID: %s", from, r.Value, missing)
				}
				if first, known := owner[id]; known && first != c.at {
					t.Fatalf("%s: %s is taken for a copy of %+v", from, r.Value, changes[first])
				} else if !known && len(owner) != c.at {
					t.Fatalf("%s: %s was sent again and is taken for another", from, r.Value)
				}
				owner[id] = c.at
				if random.IntN(40) == 0 && sent < 2000 { // starts again
					at = max(-1, at-random.IntN(30))
				}
			}
			if len(owner) != len(changes) {
				t.Errorf("%s: %d IDs of %d changes", from, len(owner), len(changes))
			}
		}
	}
}

func TestWhatIsNoChangePassesAndWhatCannotBeToldApartHasNoID(t *testing.T) {
	for _, row := range []struct {
		from, key, value string
		want             dedup.MissingReason
	}{
		{"maxwell", "", `{"database":"d","table":"t","type":"bootstrap-start","ts":1,"data":{}}`,
			dedup.MissingExempt},
		{"maxwell", "", `{"database":"d","table":"t","type":"bootstrap-complete","ts":1}`,
			dedup.MissingExempt},
		{"maxwell", "", `{"database":"d","table":"t","type":"bootstrap-insert","ts":1,"data":{}}`,
			dedup.NotMissing},
		{"maxwell", "", `{"database":"d","type":"database-drop","ts":1,"sql":"drop database d"}`,
			dedup.NotMissing},
		{"maxwell", "", `{"database":"d","table":"t","type":"insert","ts":1,"data":{}}`,
			dedup.MissingAbsent},
		{"maxwell", "", `{"database":"d","table":"t","type":"insert","ts":1,"data":{},"xid":null}`,
			dedup.MissingAbsent},
		{"maxwell", "", `{"database":"d"`, dedup.MissingUnparsable},
		{"maxwell", "", `[1]`, dedup.MissingAbsent},
		{"canal_json", "", `{"id":0,"type":"TIDB_WATERMARK","es":1}`, dedup.MissingExempt},
		{"canal_json", "", `{"id":0,"isDdl":true,"type":"ALTER","es":1,"sql":"x"}`,
			dedup.MissingExempt},
		{"canal_json", "", `{"id":7,"isDdl":true,"type":"ALTER","es":1,"sql":"x"}`, dedup.NotMissing},
		{"canal_json", "", `{"id":7,"isDdl":false,"type":"INSERT"}`, dedup.MissingAbsent},
		{"ticdc", "", `{"id":0,"type":"TIDB_WATERMARK","_tidb":{"watermarkTs":1}}`,
			dedup.MissingExempt},
		{"ticdc", "", `{"id":0,"isDdl":true,"type":"ALTER","es":1,"_tidb":{"commitTs":1}}`,
			dedup.MissingExempt},
		{"ticdc", "", `{"op":"m","source":{"connector":"TiCDC","commit_ts":1}}`,
			dedup.MissingExempt},
		{"ticdc", "", `{"payload":{"ddl":"x","source":{"connector":"TiCDC","commit_ts":1}},` +
			`"schema":{}}`, dedup.MissingExempt},
		{"ticdc", "", `{"op":"c","source":{"connector":"mysql"},"after":{}}`, dedup.MissingAbsent},
		{"debezium", "", `{"op":"m","source":{"connector":"TiCDC","commit_ts":1},"ts_ms":1}`,
			dedup.MissingExempt},
		{"debezium", "", `{"op":"m","source":{"connector":"postgresql","lsn":1},"message":{}}`,
			dedup.NotMissing},
		{"cockroachdb", "", `{"resolved":"1.0"}`, dedup.MissingExempt},
		{"cockroachdb", "", `{"__crdb__":{"resolved":"1.0"}}`, dedup.MissingExempt},
		{"cockroachdb", "", `{"after":{"resolved":"x"}}`, dedup.MissingAbsent},
		{"cockroachdb", "", `{"resolved":"1.0","updated":"1.0","after":null}`, dedup.NotMissing},
		{"cockroachdb", "", `{"id":7,"updated":"yesterday"}`, dedup.MissingAbsent},
		{"cockroachdb", "", `{"after":null,"mvcc_timestamp":"1.0"}`, dedup.NotMissing},
		{"mongodb", `{"_id":{"_data":"82"}}`, `{"_id":7,"name":"full document"}`, dedup.NotMissing},
		{"mongodb", `{"schema":{},"payload":{"_id":"{\"_data\":\"82\"}"}}`, "", dedup.NotMissing},
		{"mongodb", "", `{"_id":{"_id":7,"copyingData":true},"operationType":"insert"}`,
			dedup.MissingExempt},
		{"mongodb", `{"_id":{"_id":7,"copyingData":true}}`, `{"_id":7}`, dedup.MissingExempt},
		{"mongodb", "7", `{"_id":7}`, dedup.MissingUnparsable},
		{"mongodb", "", `{"_id":7}`, dedup.MissingAbsent},
		{"mongodb", "", "", dedup.MissingNull},
		{"dms", "", `{"metadata":{"record-type":"control","operation":"create-table"}}`,
			dedup.MissingExempt},
		{"dms", "", `{"data":{},"metadata":{"record-type":"data","operation":"load"}}`,
			dedup.MissingExempt},
		{"dms", "", `{"data":{},"metadata":{"record-type":"data","operation":"insert",` +
			`"transaction-id":7}}`, dedup.MissingAbsent},
		{"dms", "", `{"data":{},"metadata":{"record-type":"data","operation":"insert",` +
			`"transaction-id":7,"transaction-record-id":1}}`, dedup.NotMissing},
		{"dms", "", `{"data":{},"metadata":null}`, dedup.MissingAbsent},
	} {
		e := mustExtractor(t, messageid.Source{From: row.from})
		r := &kgo.Record{}
		if row.key != "" {
			r.Key = []byte(row.key)
		}
		if row.value != "" {
			r.Value = []byte(row.value)
		}
		if _, missing := extract(t, e, r); missing != row.want {
			t.Errorf("%s: %s: %s, want %s", row.from, row.value, missing, row.want)
		}
	}
}

// A field that counts makes another change, wherever it stands in the document; one that does not
// count makes none.
func TestOrderAndOtherFieldsOfAChangeDoNotCount(t *testing.T) {
	e := mustExtractor(t, messageid.Source{From: "dms"})
	ids := make(map[dedup.ID]string)
	for _, value := range []string{
		`{"data":{"id":1},"metadata":{"stream-position":"a","operation":"update"}}`,
		` {"new":1,"metadata" : {"operation":"update","timestamp":"b","stream-position":"a"},` +
			`"data":{"id":1}} `,
	} {
		id, _ := extract(t, e, &kgo.Record{Value: []byte(value)})
		ids[id] = value
	}
	if len(ids) != 1 {
		t.Errorf("two IDs: %v", ids)
	}
	for _, other := range []string{`"id":2`, `"stream-position":"c"`, `"operation":"delete"`} {
		name, _, _ := strings.Cut(other, ":")
		value := `{"data":{"id":1},"metadata":{"stream-position":"a","operation":"update"}}`
		at := strings.Index(value, name)
		end := at + strings.IndexAny(value[at:], ",}")
		id, _ := extract(t, e, &kgo.Record{Value: []byte(value[:at] + other + value[end:])})
		if ids[id] != "" {
			t.Errorf("%s does not count", other)
		}
	}
}

func FuzzFeeds(f *testing.F) {
	var all []*messageid.Extractor
	for from, form := range forms {
		for at := range 3 {
			f.Add([]byte(`{"id":1}`), []byte(form(rowChange{at: at})))
		}
		e, err := messageid.New(messageid.Source{From: from})
		if err != nil {
			f.Fatal(err)
		}
		all = append(all, e)
	}
	f.Fuzz(func(t *testing.T, key, value []byte) {
		for _, e := range all {
			r := &kgo.Record{Key: key, Value: value}
			id, missing := e.Extract(r)
			if again, why := e.Extract(r); again != id || why != missing ||
				(missing == dedup.NotMissing) != (id != "") {
				t.Fatalf("%s: %q, %s, and then %q, %s", e, id, missing, again, why)
			}
		}
	})
}
