package e2e_test

import (
	"context"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/kdedup/kdedup/dedup/messageid"
	"github.com/kdedup/kdedup/internal/testkit"
	"github.com/kdedup/kdedup/internal/testkit/servers"
)

// Confluent's Python client writes the records, under two versions of their schema.
func TestRecordsOfSerializersAreCleanedOnce(t *testing.T) {
	t.Parallel()
	taken := testkit.Share(t, []string{"avro", "protobuf", "json_schema"}, nil)
	registry := servers.Registry(t)
	python, err := servers.FindPython(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, from := range taken {
		t.Run(from, func(t *testing.T) { cleanSerialized(t, from, registry, python) })
	}
}

// While producers change, each record of a topic may name its schema before the value or in a
// header.
func TestATopicOfTwoFramingsIsCleanedOnce(t *testing.T) {
	testkit.InTurn(t)
	t.Parallel()
	registry := servers.Registry(t)
	python, err := servers.FindPython(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	const records = 100_000
	d := serialized(t, "avro")
	d.addSettings(fmt.Sprintf("schema_registry: {type: apicurio, urls: [%q], timeout: 2s}",
		"http://"+registry.Addr()))
	d.produceSerialized(registry, python, "avro", records, "both")
	framings := make(map[bool]int)
	for _, r := range flat(d.records(d.input)) {
		framings[messageid.SchemaHeader(r, false) != ""]++
	}
	if min(framings[true], framings[false]) < records/4 {
		t.Fatalf("so many records have the header, or not: %v", framings)
	}
	d.killInMidRun(nil)
	d.waitFor(1)
	d.mustLoseNothing()
	if v := d.check(); v.ids != records-records/10 {
		t.Errorf("%d IDs", v.ids)
	}
	d.mustHaveNoLetters()
}

// serialized cleans a topic of what serializers write.
func serialized(t *testing.T, from string) *deployment {
	t.Helper()
	return prepare(t, realServers(t), exactlyOnce, "session_timeout: 6s", "batch_records: 2000",
		fmt.Sprintf("message_id: {from: %s, path: order.id}", from),
		// one version of the schema has a channel, and a copy may be of the other
		"fingerprint: {ignore: [channel]}", "on_conflict: dead_letter")
}

// produceSerialized makes the topics and has Confluent's client write the records.
func (d *deployment) produceSerialized(
	registry *servers.Server, python *servers.Python, from string, records int, how ...string,
) {
	d.t.Helper()
	d.command("setup", "--skip-self-test")
	ctx, cancel := context.WithTimeout(d.t.Context(), 5*time.Minute)
	defer cancel()
	if err := python.Run(ctx, append([]string{filepath.Join("testdata", "produce.py"),
		servers.RegistryURL(registry), strings.Join(d.brokers, ","), d.input,
		strconv.Itoa(partitions), from, strconv.Itoa(records)}, how...)...); err != nil {
		d.t.Fatal(err)
	}
}

func cleanSerialized(
	t *testing.T, from string, registry *servers.Server, python *servers.Python,
) {
	const records = 100_000
	d := serialized(t, from)
	d.addSettings(fmt.Sprintf("schema_registry: {urls: [%q], timeout: 2s}",
		servers.RegistryURL(registry)))
	d.produceSerialized(registry, python, from, records)
	if from != "json_schema" { // which no schema has to be known for
		d.waitForTheRegistry(registry)
	}
	d.killInMidRun(nil)
	d.waitFor(1)
	d.mustLoseNothing()
	if v := d.check(); v.ids != records-records/10 {
		t.Errorf("%d IDs", v.ids)
	}
	d.mustHaveNoLetters()
}

// waitForTheRegistry has a process begin while the registry does not answer, and kills it.
func (d *deployment) waitForTheRegistry(registry *servers.Server) {
	d.t.Helper()
	if err := registry.Pause(); err != nil {
		d.t.Fatal(err)
	}
	early := d.start("early")
	testkit.Eventually(d.t, time.Minute, "a lane that waits for the registry", func() bool {
		for _, metric := range early.scrape()["kdedup_blocked_seconds_total"].GetMetric() {
			for _, label := range metric.GetLabel() {
				if label.GetValue() == "registry" && metric.GetCounter().GetValue() > 0 {
					return true
				}
			}
		}
		return false
	})
	early.kill()
	if err := registry.Resume(); err != nil {
		d.t.Fatal(err)
	}
	if committed, _ := d.progress(); committed > 0 {
		d.t.Errorf("%d records were committed while the registry did not answer", committed)
	}
}

func (d *deployment) mustHaveNoLetters() {
	d.t.Helper()
	if letters := flat(d.records(d.input + ".dlq")); len(letters) > 0 {
		d.t.Errorf("%d dead letters, such as %v", len(letters), letters[0].Headers)
	}
}
