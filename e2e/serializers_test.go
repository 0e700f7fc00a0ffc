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

	"github.com/kdedup/kdedup/config"
	"github.com/kdedup/kdedup/dedup/messageid"
	"github.com/kdedup/kdedup/internal/testkit"
	"github.com/kdedup/kdedup/internal/testkit/servers"
)

// serialization is a topic of what serializers write, under two versions of their schema.
type serialization struct {
	from     string
	part     string // of the record, that has the ID
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
	{"avro", "value", "number", confluent},
	{"protobuf", "value", "number", confluent},
	{"json_schema", "value", "number", confluent},
	{"avro", "value", "guid", guids},
	{"protobuf", "value", "guid", guids},
	{"json_schema", "value", "guid", guids},
	{"avro", "value", "number,guid", guids},
	{"protobuf", "value", "number,guid", guids},
	{"avro", "value", "number,apicurio_header", confluentAndHeaders},
	{"avro", "value", "content_id", apicurio("")},
	{"avro", "value", "global_id", apicurio(", use_id: global_id")},
	{"avro", "value", "global_id_8", apicurio(", use_id: global_id, id_bytes: 8")},
	{"avro", "value", "headers", apicurio("")},
	{"avro", "value", "content_id,headers", apicurio("")},
	{"avro", "value", "glue", glue},
	{"avro", "value", "glue_zlib", glue},
	{"avro", "value", "single_object", files},
	{"avro", "value", "azure", azure},
	{"avro", "key", "guid", guids},
	{"protobuf", "key", "guid", guids},
	{"avro", "key", "content_id,headers", apicurio("")},
	{"avro", "key", "glue", glue},
}

// With 5,000 records each, for every change.
var someSerializations = []serialization{
	{"avro", "value", "number,guid", guids},
	{"avro", "value", "content_id,headers", apicurio("")},
	{"avro", "value", "glue_zlib", glue},
	{"avro", "value", "single_object", files},
}

// Clients of Confluent, Apicurio, AWS, Azure and Apache Avro write the records.
func TestRecordsOfSerializersAreCleanedOnce(t *testing.T) {
	t.Parallel()
	usual := 5_000
	if os.Getenv(testkit.ShareEnv) != "" {
		usual = 100_000
	}
	records := testkit.Number(t, "KDEDUP_SERIALIZER_RECORDS", usual)
	all := &schemaServers{t: t}
	for _, s := range testkit.Share(t, serializations, someSerializations) {
		t.Run(s.from+" "+s.part+" "+s.framings, func(t *testing.T) { s.clean(t, all, records) })
	}
}

func (s serialization) clean(t *testing.T, all *schemaServers, records int) {
	w := s.at(t, all)
	d := prepare(t, realServers(t), exactlyOnce, "session_timeout: 6s", "batch_records: 2000",
		fmt.Sprintf("message_id: {from: %s, part: %s, path: order.id}", s.from, s.part),
		s.fingerprint(), "on_conflict: dead_letter")
	d.env = servers.AnyCredentials
	d.addSettings("schema_registry: {" + w.settings + ", timeout: 2s}")
	d.command("setup", "--skip-self-test")
	w.write(t, w.registry, strings.Join(d.brokers, ","), d.input, strconv.Itoa(partitions), s.from,
		strconv.Itoa(records), s.framings, s.part)
	s.mustHaveFramings(t, flat(d.records(d.input)))
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

// fingerprint makes copies of records of both versions: one has a channel, the other none. A key
// counts byte for byte, with the channel and with what names its schema.
func (s serialization) fingerprint() string {
	if s.part == config.PartKey {
		return "fingerprint: none"
	}
	return "fingerprint: {ignore: [channel]}"
}

// mustHaveFramings wants each of them in a share of the records, and no other.
func (s serialization) mustHaveFramings(t *testing.T, records []*kgo.Record) {
	t.Helper()
	seen := make(map[string]int)
	for _, r := range records {
		seen[s.framing(r)]++
	}
	all := strings.Split(s.framings, ",")
	for _, framing := range all {
		name := strings.ReplaceAll(marks[framing], "PART", s.part)
		if name == "" || seen[name] < len(records)/3 {
			t.Errorf("%d of %d records have %q, of %s: %v", seen[name], len(records), name, framing,
				seen)
		}
	}
	if len(seen) != len(all) {
		t.Errorf("%d framings, want %s: %v", len(seen), s.framings, seen)
	}
}

// marks are how records of each framing are told.
var marks = map[string]string{
	"number": "a number", "content_id": "a number", "global_id": "a number",
	"global_id_8": "a number", "guid": "__PART_schema_id",
	"apicurio_header": "apicurio.PART.contentId", "headers": "apicurio.PART.contentId",
	"glue": "Glue's header", "glue_zlib": "Glue's header before zlib",
	"single_object": "a fingerprint", "azure": "Azure's header",
}

func (s serialization) framing(r *kgo.Record) string {
	for _, h := range r.Headers {
		if h.Key == "content-type" {
			return "Azure's header"
		}
	}
	ofKey, part := s.part == config.PartKey, r.Value
	if ofKey {
		part = r.Key
	}
	switch header := messageid.SchemaHeader(r, ofKey); {
	case header != "":
		return header
	case messageid.IsSingleObject(part):
		return "a fingerprint"
	case messageid.IsGlue(part) && part[1] == 0:
		return "Glue's header"
	case messageid.IsGlue(part):
		return "Glue's header before zlib"
	case bytes.HasPrefix(part, []byte{0}):
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
