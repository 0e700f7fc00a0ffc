package e2e_test

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/dedup/messageid"
	"github.com/kdedup/kdedup/internal/testkit"
	"github.com/kdedup/kdedup/internal/testkit/servers"
)

// A Debezium on PostgreSQL writes keys and values by AWS's converter, begins again with offsets
// from before the changes, and writes them once more, at last compressed.
func TestChangesInAvroOfGlueAreForwardedOnce(t *testing.T) {
	t.Parallel()
	const rows = 1_000
	servers.NeedPostgres(t)
	database, err := servers.StartPostgres(t.Context(), servers.PostgresOptions{Dir: t.TempDir(),
		Config: map[string]string{"wal_level": "logical", "fsync": "off"}})
	servers.ForTest(t, database, err)
	glue := "http://" + servers.Glue(t).Addr()
	d := prepare(t, place{brokers: testkit.Kafka(t), store: embeddedStore(t)}, exactlyOnce,
		"message_id: {preset: debezium, format: avro}", "batch_records: 500")
	d.env = servers.AnyCredentials
	d.addSettings(fmt.Sprintf("schema_registry: {type: glue, urls: [%q], region: eu-central-1}",
		glue))
	d.command("setup", "--skip-self-test")

	folder := t.TempDir()
	write := func(compression, what string) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
		defer cancel()
		debezium, err := servers.FindDebezium(ctx)
		if err == nil {
			err = debezium.Run(ctx, "testdata/Changes.java", glue, strings.Join(d.brokers, ","),
				d.input, strconv.Itoa(partitions), database.Addr(), folder, strconv.Itoa(rows),
				compression, what)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	write("NONE", "begin")
	d.start("one")
	write("NONE", "again")
	write("ZLIB", "again")
	d.waitFor(1)
	d.mustHaveNoLetters()

	in, clean := countChanges(t, d.records(d.input)), countChanges(t, d.records(d.output()))
	const snapshot, once = 3, 3 + 2 + 1 + 2 + 2 + 3*rows // without tombstones
	if len(in.times) != snapshot+once || in.records != snapshot+3*once {
		t.Errorf("the connector sent %d records of %d changes, want %d of %d", in.records,
			len(in.times), snapshot+3*once, snapshot+once)
	}
	if in.packed < once || in.packed > in.records-once {
		t.Errorf("%d of %d records are compressed", in.packed, in.records)
	}
	for change := range in.times {
		if n := clean.times[change]; n != 1 {
			t.Errorf("%s is %d times on the clean topic", change, n)
		}
	}
	if clean.records != len(in.times) || clean.tombstones != in.tombstones ||
		in.tombstones != 3*2 {
		t.Errorf("%d records and %d tombstones are clean, of %d changes and %d", clean.records,
			clean.tombstones, len(in.times), in.tombstones)
	}
}

type changesSeen struct {
	times                       map[string]int
	records, tombstones, packed int
}

// countChanges tells changes by what the database said of them, not by their bytes.
func countChanges(t *testing.T, records map[int32][]*kgo.Record) changesSeen {
	t.Helper()
	seen := changesSeen{times: make(map[string]int)}
	for _, r := range flat(records) {
		if r.Value == nil {
			seen.tombstones++
			continue
		}
		if !messageid.IsGlue(r.Value) || len(r.Key) > 0 && r.Key[1] != r.Value[1] {
			t.Fatalf("not of Glue's: %x, %x", r.Key, r.Value)
		}
		seen.records++
		if r.Value[1] != 0 {
			seen.packed++
		}
		seen.times[string(r.Headers[0].Value)]++
	}
	return seen
}
