package e2e_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/dedup/messageid"
	"github.com/kdedup/kdedup/internal/testkit"
	"github.com/kdedup/kdedup/internal/testkit/servers"
)

// serialization is a topic of what serializers write, under two versions of their schema.
type serialization struct {
	from     string
	framings string // of each record one of these, as while producers change
	at       func(t *testing.T, s *schemaServers) writing
}

// writing is who writes, and where the schemas are.
type writing struct {
	program  string // a file of testdata
	registry string // what the program is told
	settings string // schema_registry of kdedup
}

const (
	python = "produce.py"
	java   = "Produce.java"
)

var serializations = []serialization{
	{"avro", "number", confluent},
	{"protobuf", "number", confluent},
	{"json_schema", "number", confluent},
	{"avro", "number,guid", guids},
	{"avro", "number,apicurio_header", confluentAndHeaders},
	{"avro", "glue", glue},
	{"avro", "glue_zlib", glue},
	{"avro", "single_object", files},
}

// With 5,000 records each, for every change.
var someSerializations = []serialization{
	{"avro", "number,guid", guids},
	{"avro", "glue_zlib", glue},
	{"avro", "single_object", files},
}

// Clients of Confluent, AWS and Apache Avro write the records.
func TestRecordsOfSerializersAreCleanedOnce(t *testing.T) {
	t.Parallel()
	records := 5_000
	if os.Getenv(testkit.ShareEnv) != "" {
		records = 100_000
	}
	all := &schemaServers{t: t}
	for _, s := range testkit.Share(t, serializations, someSerializations) {
		t.Run(s.from+" "+s.framings, func(t *testing.T) { s.clean(t, all, records) })
	}
}

func (s serialization) clean(t *testing.T, all *schemaServers, records int) {
	w := s.at(t, all)
	d := prepare(t, realServers(t), exactlyOnce, "session_timeout: 6s", "batch_records: 2000",
		fmt.Sprintf("message_id: {from: %s, path: order.id}", s.from),
		// one version of the schema has a channel, and a copy may be of the other
		"fingerprint: {ignore: [channel]}", "on_conflict: dead_letter")
	d.env = servers.AnyCredentials
	d.addSettings("schema_registry: {" + w.settings + ", timeout: 2s}")
	d.command("setup", "--skip-self-test")
	w.write(t, w.registry, strings.Join(d.brokers, ","), d.input, strconv.Itoa(partitions), s.from,
		strconv.Itoa(records), s.framings)
	mustHaveFramings(t, flat(d.records(d.input)), strings.Count(s.framings, ",")+1)
	if s.framings == "number" && s.from != "json_schema" { // which no schema has to be known for
		d.waitForTheRegistry(all.apicurio())
	}
	d.killInMidRun(nil)
	d.waitFor(1)
	d.mustLoseNothing()
	if v := d.check(); v.ids != records-records/10 {
		t.Errorf("%d IDs of %d records", v.ids, records)
	}
	d.mustHaveNoLetters()
}

// mustHaveFramings wants n of them, each in a share of the records.
func mustHaveFramings(t *testing.T, records []*kgo.Record, n int) {
	t.Helper()
	seen := make(map[string]int)
	for _, r := range records {
		seen[framing(r)]++
	}
	for name, count := range seen {
		if count < len(records)/3 {
			t.Errorf("%d of %d records have %s", count, len(records), name)
		}
	}
	if len(seen) != n {
		t.Errorf("%d framings, want %d: %v", len(seen), n, seen)
	}
}

func framing(r *kgo.Record) string {
	for _, h := range r.Headers {
		if h.Key == "content-type" {
			return "Azure's header"
		}
	}
	switch header := messageid.SchemaHeader(r, false); {
	case header != "":
		return header
	case messageid.IsSingleObject(r.Value):
		return "a fingerprint"
	case messageid.IsGlue(r.Value) && r.Value[1] == 0:
		return "Glue's header"
	case messageid.IsGlue(r.Value):
		return "Glue's header before zlib"
	case bytes.HasPrefix(r.Value, []byte{0}):
		return "a number"
	}
	return "nothing"
}

// write has the program write the records.
func (w writing) write(t *testing.T, args ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	var serializers interface {
		Run(ctx context.Context, args ...string) error
	}
	var err error
	if w.program == java {
		serializers, err = servers.FindSerializers(ctx)
	} else {
		serializers, err = servers.FindClouds(ctx)
	}
	if err == nil {
		file := filepath.Join("testdata", w.program)
		err = serializers.Run(ctx, append([]string{file}, args...)...)
	}
	if err != nil {
		t.Fatal(err)
	}
}
