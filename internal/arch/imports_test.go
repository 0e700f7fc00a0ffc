package arch

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// layers says what of this module a package may import, its tests aside. A package that is not here
// may import nothing of it. Names ending in /... stand for all below, too; the first that fits
// counts.
var layers = []struct {
	pkg string
	may []string
}{
	{"config", []string{"internal/editdistance", "internal/jsonpath"}},
	{"config/internal/...", []string{"config"}},
	{"fence", nil},
	// What a session does, and below it how, on a client of Kafka.
	{"consumer", []string{"fence", "internal/crashpoint", "internal/pause"}},
	{"consumer/client", []string{"consumer", "fence", "internal/brokers", "internal/crashpoint",
		"internal/pause"}},
	{"dedup", []string{"internal/pause", "internal/outage"}},
	{"dedup/messageid", []string{"dedup", "internal/avropath", "internal/jsonpath",
		"internal/protopath"}},
	{"internal/registry", []string{"dedup/messageid"}},
	{"internal/avropath", []string{"dedup", "internal/jsonpath"}},
	{"internal/protopath", []string{"dedup", "internal/jsonpath"}},
	{"internal/claimmetrics", []string{"dedup", "internal/telemetry"}},
	{"dedup/cassandra", []string{"dedup", "internal/bloom", "internal/crashpoint", "internal/pause",
		"internal/siphash", "internal/telemetry"}},
	{"dedup/embedded", []string{"dedup", "internal/crashpoint", "internal/durable",
		"internal/hashlog", "internal/steadyclock"}},
	{"dedup/postgres", []string{"dedup", "internal/crashpoint", "internal/pause",
		"internal/steadyclock", "internal/telemetry"}},
	{"dedup/claimlog", []string{"dedup", "internal/crashpoint", "internal/durable",
		"internal/hashlog", "internal/pause", "internal/siphash", "internal/steadyclock",
		"internal/uuidtext"}},
	{"dedup/claimlog/cassandralog", []string{"dedup/cassandra", "dedup/claimlog",
		"internal/pause"}},
	{"dedup/claimlog/keepers", []string{"dedup/claimlog", "internal/pause"}},
	{"dedup/claimlog/logtest", []string{"dedup", "dedup/claimlog", "dedup/storetest"}},
	{"dedup/claimlog/...", []string{"dedup/claimlog"}},
	{"dedup/...", []string{"dedup", "internal/crashpoint", "internal/pause", "internal/telemetry"}},
	{"forwarder", []string{"internal/crashpoint"}},
	{"internal/server", []string{"internal/certs", "internal/pagestyle"}},
	// A library of its own: nothing of Kafka, and no telemetry.
	{"idempotency", nil},
	{"idempotency/embedded", []string{"idempotency", "internal/durable", "internal/hashlog",
		"internal/steadyclock"}},
	{"idempotency/postgres", []string{"idempotency", "internal/steadyclock"}},
	{"idempotency/...", []string{"idempotency"}},
	{"examples/idempotency", []string{"idempotency/..."}},
	{"examples/consumer", []string{"dedup/..."}},
	{"examples/outbox", []string{"dedup/...", "idempotency/..."}},
	{"examples/api", nil},
	{"examples/uniquestore", []string{"idempotency/..."}},
	// What other languages ask; generated, but for the program that makes it.
	{"api/...", []string{"api/kdedup/v1"}},
	{"internal/api", []string{"api/...", "dedup", "idempotency", "internal/certs"}},
	{"pipeline", []string{"consumer", "dedup", "forwarder", "internal/crashpoint", "internal/pause",
		"internal/telemetry", "internal/outage"}},
	// Work on topics beside the pipelines, for commands of their own.
	{"internal/report", []string{"dedup", "dedup/messageid", "internal/idorder",
		"internal/jsonpath", "internal/logreader", "internal/pagestyle"}},
	{"internal/proposal", []string{"dedup", "dedup/messageid", "internal/jsonpath",
		"internal/logreader", "internal/report"}},
	{"internal/backfill", []string{"dedup", "internal/logreader"}},
	{"internal/dryrun", []string{"dedup"}},
	{"internal/redrive", []string{"dedup", "forwarder", "internal/crashpoint", "internal/dryrun",
		"internal/logreader", "internal/pause"}},
	{"internal/offsets", []string{"dedup", "internal/logreader"}},
	{"internal/migrate", []string{"dedup", "internal/pause"}},
	{"internal/certs", nil},
	{"internal/kafka", []string{"config", "internal/brokers", "internal/certs",
		"internal/editdistance", "internal/pause"}},
	// What traces and metrics have in common on their way to a collector, and the metrics' way.
	{"internal/otlp", nil},
	{"internal/otlp/push", []string{"internal/otlp", "internal/outage"}},
	{"pipeline/tracing", []string{"consumer", "dedup", "internal/api", "internal/otlp",
		"internal/telemetry",
		"internal/outage", "pipeline"}},
	{"internal/testkit/...", []string{"internal/durable", "internal/testkit/..."}},
	{"internal/brokers", nil},
	{"internal/editdistance", nil},
	{"internal/idorder", nil},
	{"internal/pause", nil},
	{"internal/outage", nil},
	{"internal/logqueue", nil},
	{"internal/jsonpath", nil},
	{"internal/bloom", nil},
	{"internal/durable", nil},
	{"internal/hashlog", []string{"internal/bloom", "internal/durable", "internal/siphash",
		"internal/uuidtext"}},
	{"internal/uuidtext", nil},
	{"internal/siphash", nil},
	{"internal/steadyclock", []string{"internal/durable"}},
	{"internal/workload", []string{"internal/pause"}},
	{"internal/torture", []string{"internal/pause", "internal/workload"}},
	// The contestants are not part of the product and share nothing with it: they stand for other
	// people's programs.
	{"bench/contestants/...", []string{"bench/contestants/member"}},
	{"bench", []string{"internal/testkit/servers", "internal/torture", "internal/workload"}},
	// Everything meets in the command. Nothing but it, the traces and the end-to-end tests imports
	// pipeline. A command may use the process, never the other way round.
	{"cmd/kdedup/internal/build", nil},
	{"cmd/kdedup/internal/wiring", []string{
		"config", "consumer/client", "dedup/...", "fence", "forwarder", "idempotency/...",
		"internal/api", "internal/brokers", "internal/certs", "internal/kafka",
		"internal/logreader", "internal/registry", "pipeline",
	}},
	{"cmd/kdedup/internal/lookup", []string{"cmd/kdedup/internal/wiring", "config", "dedup",
		"fence", "internal/kafka", "internal/server"}},
	{"cmd/kdedup/internal/redriving", []string{"cmd/kdedup/internal/wiring", "config", "dedup",
		"dedup/embedded", "forwarder", "internal/kafka", "internal/logreader", "internal/redrive",
		"pipeline"}},
	{"cmd/kdedup/internal/migration", []string{"cmd/kdedup/internal/wiring", "config", "dedup/...",
		"fence", "internal/brokers", "internal/kafka", "internal/migrate"}},
	{"cmd/kdedup/internal/process", []string{
		"cmd/kdedup/internal/build", "cmd/kdedup/internal/lookup",
		"cmd/kdedup/internal/redriving", "cmd/kdedup/internal/wiring",
		"config", "consumer", "consumer/client", "dedup/...", "fence", "forwarder",
		"internal/api", "internal/certs", "internal/claimmetrics", "internal/kafka",
		"internal/logreader", "internal/otlp/...", "internal/pause", "internal/redrive",
		"internal/registry", "internal/server", "internal/telemetry", "internal/outage", "pipeline",
		"pipeline/tracing",
	}},
	{"cmd/...", []string{
		"cmd/kdedup/internal/...", "config", "consumer", "consumer/client", "dedup/...", "fence",
		"forwarder", "internal/api", "internal/backfill", "internal/brokers",
		"internal/claimmetrics", "internal/dryrun",
		"internal/editdistance", "internal/idorder", "internal/kafka",
		"internal/logqueue", "internal/logreader", "internal/offsets", "internal/otlp/push",
		"internal/pause", "internal/proposal", "internal/redrive", "internal/report",
		"internal/telemetry", "internal/torture", "internal/workload", "pipeline",
		"pipeline/tracing",
	}},
	{"e2e/...", []string{"..."}},
}

// dependencies says which packages may import what should not spread.
var dependencies = []struct {
	imported string
	by       []string
	tests    bool // the tests of all packages may import it, too
}{
	{"github.com/gocql/gocql", []string{"dedup/cassandra", "dedup/claimlog/cassandralog",
		"idempotency/cassandra", "e2e/...", "bench/..."}, false},
	{"github.com/redis/go-redis/v9", []string{"dedup/redis", "idempotency/redis", "e2e/...",
		"bench/..."}, false},
	{"github.com/jackc/pgx/v5", []string{"dedup/postgres", "idempotency/postgres", "examples/...",
		"e2e/..."}, false},
	{"github.com/jackc/pgx/v5/pgxpool", []string{"dedup/postgres", "idempotency/postgres",
		"examples/..."}, false},
	{"github.com/spf13/viper", []string{"config"}, false},
	{"github.com/spf13/cobra", []string{"cmd/kdedup"}, false},
	// demos
	{"github.com/twmb/franz-go/pkg/kfake",
		[]string{"internal/testkit", "cmd/kdedup", "examples/consumer"}, true},
	// It also serves on http.DefaultServeMux, which nobody may use.
	{"net/http/pprof", []string{"internal/server"}, false},
	{"github.com/anishathalye/porcupine", nil, true},
	{"github.com/chromedp/chromedp", []string{"internal/testkit/browser"}, true},
	{"connectrpc.com/...", []string{"api/...", "internal/api"}, true},
	{"go.opentelemetry.io/...", []string{"internal/otlp/...", "pipeline/tracing"}, true},
	{"github.com/twmb/franz-go/plugin/kotel", []string{"pipeline/tracing"}, false},
	{"testing", []string{"internal/testkit/...", "dedup/storetest", "dedup/claimlog/logtest",
		"idempotency/storetest"}, true},
}

func TestImportDirections(t *testing.T) {
	for _, s := range sources(t) {
		for _, violation := range violations(s) {
			t.Error(violation)
		}
	}
}

// violations names the file, the import and the rule of each import that breaks one.
func violations(s source) []string {
	var found []string
	for _, imported := range s.imports {
		if v := layerViolation(s, imported); v != "" {
			found = append(found, v)
		}
		if v := dependencyViolation(s, imported); v != "" {
			found = append(found, v)
		}
	}
	return found
}

func layerViolation(s source, imported string) string {
	ours, isOurs := strings.CutPrefix(imported, module)
	if !isOurs || s.isTest() {
		return ""
	}
	for _, layer := range layers {
		if !matches(layer.pkg, s.dir()) {
			continue
		}
		if matchesAny(layer.may, ours) {
			return ""
		}
		return fmt.Sprintf("%s imports %s: of this module %s may import %s", s.name, ours,
			layer.pkg, list(layer.may))
	}
	return fmt.Sprintf("%s imports %s: the table layers does not say yet what %s may import",
		s.name, ours, s.dir())
}

func dependencyViolation(s source, imported string) string {
	for _, d := range dependencies {
		if !matches(d.imported, imported) || matchesAny(d.by, s.dir()) || (d.tests && s.isTest()) {
			continue
		}
		return fmt.Sprintf("%s imports %s: only %s may", s.name, imported, list(d.by))
	}
	return ""
}

func matchesAny(patterns []string, pkg string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { return matches(p, pkg) })
}

func matches(pattern, pkg string) bool {
	parent, all := strings.CutSuffix(pattern, "...")
	if !all {
		return pkg == pattern
	}
	return strings.HasPrefix(pkg+"/", parent)
}

func list(pkgs []string) string {
	if len(pkgs) == 0 {
		return "nothing"
	}
	return strings.Join(pkgs, ", ")
}

func TestViolationsNameTheImportAndTheRule(t *testing.T) {
	for _, c := range []struct {
		file, imported string
		want           []string
	}{
		{"config/load.go", "github.com/spf13/viper", nil},
		{"config/load.go", module + "dedup",
			[]string{"config/load.go imports dedup: of this module config may import " +
				"internal/editdistance, internal/jsonpath"}},
		{"config/internal/gendoc/main.go", module + "config", nil},
		{"consumer/member.go", module + "forwarder", []string{"consumer/member.go imports " +
			"forwarder: of this module consumer may import fence, internal/crashpoint, " +
			"internal/pause"}},
		{"consumer/member_test.go", module + "internal/testkit", nil},
		{"dedup/redis/store.go", module + "dedup", nil},
		{"dedup/redis/store.go", module + "dedup/memory", []string{"dedup/redis/store.go imports " +
			"dedup/memory: of this module dedup/... may import dedup, internal/crashpoint, " +
			"internal/pause, internal/telemetry"}},
		{"dedup/deduper.go", module + "dedup/memory", []string{"dedup/deduper.go imports " +
			"dedup/memory: of this module dedup may import internal/pause, " +
			"internal/outage"}},
		{"idempotency/lease.go", module + "dedup",
			[]string{"idempotency/lease.go imports dedup: of this module idempotency may import " +
				"nothing"}},
		{"internal/server/page.go", module + "pipeline",
			[]string{"internal/server/page.go imports pipeline: of this module internal/server " +
				"may import internal/certs, internal/pagestyle"}},
		{"internal/new/new.go", module + "pipeline", []string{"internal/new/new.go imports " +
			"pipeline: the table layers does not say yet what internal/new may import"}},
		{"pipeline/lane.go", module + "consumer", nil},
		{"cmd/kdedup/internal/wiring/cassandra.go", module + "dedup/cassandra", nil},
		{"cmd/kdedup/demo.go", module + "internal/testkit", []string{
			"cmd/kdedup/demo.go imports internal/testkit: of this module cmd/... may import " +
				"cmd/kdedup/internal/..., config, consumer, consumer/client, dedup/..., " +
				"fence, forwarder, internal/api, internal/backfill, internal/brokers, " +
				"internal/claimmetrics, internal/dryrun, internal/editdistance, internal/idorder, internal/kafka, " +
				"internal/logqueue, internal/logreader, " +
				"internal/offsets, internal/otlp/push, internal/pause, internal/proposal, " +
				"internal/redrive, internal/report, internal/telemetry, internal/torture, " +
				"internal/workload, pipeline, pipeline/tracing",
		}},
		{"cmd/kdedup/demo.go", "github.com/twmb/franz-go/pkg/kfake", nil},
		{"cmd/kdedup/internal/process/reload.go", "github.com/spf13/cobra", []string{
			"cmd/kdedup/internal/process/reload.go imports github.com/spf13/cobra: only " +
				"cmd/kdedup may",
		}},
		{"e2e/crash_test.go", "github.com/gocql/gocql", nil},
		{"pipeline/lane_test.go", "github.com/gocql/gocql", []string{"pipeline/lane_test.go " +
			"imports github.com/gocql/gocql: only dedup/cassandra, " +
			"dedup/claimlog/cassandralog, idempotency/cassandra, " +
			"e2e/..., bench/... may"}},
		{"cmd/kdedup/internal/wiring/postgres.go", "github.com/jackc/pgx/v5",
			[]string{"cmd/kdedup/internal/wiring/postgres.go imports github.com/jackc/pgx/v5: " +
				"only dedup/postgres, idempotency/postgres, examples/..., e2e/... may"}},
		{"pipeline/lane.go", "github.com/twmb/franz-go/pkg/kfake", []string{
			"pipeline/lane.go imports github.com/twmb/franz-go/pkg/kfake: only internal/testkit, " +
				"cmd/kdedup, examples/consumer may",
		}},
		{"pipeline/lane_test.go", "github.com/twmb/franz-go/pkg/kfake", nil},
		{"bench/contestants/lwt/main.go", module + "dedup",
			[]string{"bench/contestants/lwt/main.go imports dedup: of this module " +
				"bench/contestants/... may import bench/contestants/member"}},
		{"internal/server/browser_test.go", "github.com/chromedp/chromedp", nil},
		{"internal/server/page.go", "github.com/chromedp/chromedp", []string{
			"internal/server/page.go imports github.com/chromedp/chromedp: only " +
				"internal/testkit/browser may"}},
		{"pipeline/tracing/record.go", "go.opentelemetry.io/otel/trace", nil},
		{"pipeline/tracing/record.go", module + "pipeline", nil},
		{"pipeline/lane.go", "go.opentelemetry.io/otel",
			[]string{
				"pipeline/lane.go imports go.opentelemetry.io/otel: only internal/otlp/..., " +
					"pipeline/tracing may"}},
		{"pipeline/lane.go", module + "pipeline/tracing", []string{
			"pipeline/lane.go imports pipeline/tracing: of this module pipeline may import " +
				"consumer, dedup, forwarder, internal/crashpoint, internal/pause, " +
				"internal/telemetry, internal/outage",
		}},
		{"pipeline/trace_test.go", "go.opentelemetry.io/otel/sdk/trace/tracetest", nil},
		{"internal/server/server.go", "testing", []string{
			"internal/server/server.go imports testing: only internal/testkit/..., " +
				"dedup/storetest, dedup/claimlog/logtest, idempotency/storetest may"}},
	} {
		got := violations(source{name: c.file, imports: []string{c.imported}})
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s imports %s: -want +got:\n%s", c.file, c.imported, diff)
		}
	}
}
