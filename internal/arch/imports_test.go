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
	{"config", []string{"config/editdistance", "internal/jsonpath"}},
	{"config/internal/...", []string{"config"}},
	{"fence", nil},
	// What a session does, and below it how, on a client of Kafka.
	{"consumer", []string{"fence", "internal/crashpoint", "internal/pause"}},
	{"consumer/client", []string{"consumer", "fence", "internal/brokers", "internal/crashpoint",
		"internal/pause"}},
	{"dedup", []string{"internal/pause", "internal/outage"}},
	{"dedup/messageid", []string{"dedup", "dedup/messageid/avropath", "internal/jsonpath",
		"dedup/messageid/protopath"}},
	{"dedup/messageid/registry", []string{"dedup/messageid"}},
	{"dedup/messageid/avropath", []string{"dedup", "internal/jsonpath"}},
	{"dedup/messageid/protopath", []string{"dedup", "internal/jsonpath"}},
	{"dedup/claimmetrics", []string{"dedup", "internal/telemetry"}},
	{"dedup/cassandra", []string{"dedup", "internal/crashpoint", "internal/hashlog/bloom",
		"internal/hashlog/siphash", "internal/pause", "internal/telemetry"}},
	{"dedup/embedded", []string{"dedup", "internal/crashpoint", "internal/durable",
		"internal/hashlog", "internal/steadyclock"}},
	{"dedup/postgres", []string{"dedup", "internal/crashpoint", "internal/pause",
		"internal/steadyclock", "internal/telemetry"}},
	{"dedup/claimlog", []string{"dedup", "internal/crashpoint", "internal/durable",
		"internal/hashlog", "internal/pause", "internal/hashlog/siphash", "internal/steadyclock",
		"internal/hashlog/uuidtext"}},
	{"dedup/claimlog/cassandralog", []string{"dedup/cassandra", "dedup/claimlog",
		"internal/pause"}},
	{"dedup/claimlog/keepers", []string{"dedup/claimlog", "internal/brokers", "internal/pause"}},
	{"dedup/claimlog/logtest", []string{"dedup", "dedup/claimlog", "dedup/storetest"}},
	{"dedup/claimlog/...", []string{"dedup/claimlog"}},
	{"dedup/...", []string{"dedup", "internal/crashpoint", "internal/pause", "internal/telemetry"}},
	{"forwarder", []string{"internal/crashpoint"}},
	{"process/server", []string{"internal/certs", "process/pagestyle"}},
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
	{"command/report", []string{"dedup", "dedup/messageid", "command/idorder",
		"internal/jsonpath", "connect/logreader", "process/pagestyle"}},
	{"command/proposal", []string{"dedup", "dedup/messageid", "internal/jsonpath",
		"connect/logreader", "command/report"}},
	{"command/backfill", []string{"dedup", "connect/logreader"}},
	{"dedup/dryrun", []string{"dedup"}},
	{"process/redrive", []string{"dedup", "forwarder", "internal/crashpoint", "dedup/dryrun",
		"connect/logreader", "internal/pause"}},
	{"command/offsets", []string{"dedup", "connect/logreader"}},
	{"command/migration/migrate", []string{"dedup", "internal/pause"}},
	{"internal/certs", nil},
	{"connect/kafka", []string{"config", "internal/brokers", "internal/certs",
		"config/editdistance", "internal/pause"}},
	// What traces and metrics have in common on their way to a collector, and the metrics' way.
	{"internal/otlp", nil},
	{"internal/otlp/push", []string{"internal/otlp", "internal/outage"}},
	{"pipeline/tracing", []string{"consumer", "dedup", "internal/api", "internal/otlp",
		"internal/telemetry",
		"internal/outage", "pipeline"}},
	{"internal/testkit/...", []string{"internal/durable", "internal/testkit/..."}},
	{"internal/brokers", nil},
	{"config/editdistance", nil},
	{"command/idorder", nil},
	{"internal/pause", nil},
	{"internal/outage", nil},
	{"process/logqueue", nil},
	{"internal/jsonpath", nil},
	{"internal/hashlog/bloom", nil},
	{"internal/durable", nil},
	{"internal/hashlog", []string{"internal/durable", "internal/hashlog/..."}},
	{"internal/hashlog/uuidtext", nil},
	{"internal/hashlog/siphash", nil},
	{"internal/steadyclock", []string{"internal/durable"}},
	{"lab/workload", []string{"internal/pause"}},
	{"lab/torture", []string{"internal/pause", "lab/workload"}},
	// The contestants are not part of the product and share nothing with it: they stand for other
	// people's programs.
	{"bench/contestants/...", []string{"bench/contestants/member"}},
	{"bench", []string{"internal/testkit/servers", "lab/torture", "lab/workload"}},
	// Everything meets in the commands. Nothing but they, the process, the traces and the
	// end-to-end tests imports pipeline. A command may use the process, never the other way round.
	{"process/build", nil},
	{"connect", []string{
		"config", "consumer/client", "dedup/...", "fence", "forwarder", "idempotency/...",
		"internal/api", "internal/brokers", "internal/certs", "connect/kafka",
		"connect/logreader", "dedup/messageid/registry", "pipeline",
	}},
	{"process/lookup", []string{"connect", "config", "dedup",
		"fence", "connect/kafka", "process/server"}},
	{"process/redriving", []string{"connect", "config", "dedup",
		"dedup/embedded", "forwarder", "connect/kafka", "connect/logreader", "process/redrive",
		"pipeline"}},
	{"command/migration", []string{"connect", "config", "dedup/...",
		"fence", "internal/brokers", "connect/kafka", "command/migration/migrate"}},
	{"process", []string{
		"process/build", "process/lookup",
		"process/redriving", "connect",
		"config", "consumer", "consumer/client", "dedup/...", "fence", "forwarder",
		"internal/api", "internal/certs", "dedup/claimmetrics", "connect/kafka",
		"connect/logreader", "internal/otlp/...", "internal/pause", "process/redrive",
		"dedup/messageid/registry", "process/server", "internal/telemetry", "internal/outage",
		"pipeline",
		"pipeline/tracing",
	}},
	{"command/gendoc", []string{"config", "connect/kafka", "consumer", "dedup/...", "internal/api",
		"internal/otlp/push", "internal/telemetry", "pipeline", "pipeline/tracing"}},
	{"command", []string{
		"command/...", "config", "config/editdistance", "connect", "connect/...", "consumer",
		"dedup/...", "fence", "forwarder", "internal/brokers", "internal/pause",
		"internal/telemetry", "lab/torture", "lab/workload", "pipeline", "process", "process/...",
	}},
	{"cmd/kdedup", []string{"command"}},
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
	{"github.com/spf13/cobra", []string{"command"}, false},
	// demos
	{"github.com/twmb/franz-go/pkg/kfake",
		[]string{"internal/testkit", "command", "examples/consumer"}, true},
	// It also serves on http.DefaultServeMux, which nobody may use.
	{"net/http/pprof", []string{"process/server"}, false},
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
				"config/editdistance, internal/jsonpath"}},
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
		{"process/server/page.go", module + "pipeline",
			[]string{"process/server/page.go imports pipeline: of this module process/server " +
				"may import internal/certs, process/pagestyle"}},
		{"internal/new/new.go", module + "pipeline", []string{"internal/new/new.go imports " +
			"pipeline: the table layers does not say yet what internal/new may import"}},
		{"pipeline/lane.go", module + "consumer", nil},
		{"connect/drivers.go", module + "dedup/cassandra", nil},
		{"command/demo.go", module + "internal/testkit", []string{
			"command/demo.go imports internal/testkit: of this module command may import " +
				"command/..., config, config/editdistance, connect, connect/..., consumer, " +
				"dedup/..., fence, forwarder, internal/brokers, internal/pause, internal/telemetry, " +
				"lab/torture, lab/workload, pipeline, process, process/...",
		}},
		{"command/demo.go", "github.com/twmb/franz-go/pkg/kfake", nil},
		{"process/reload.go", "github.com/spf13/cobra", []string{
			"process/reload.go imports github.com/spf13/cobra: only " +
				"command may",
		}},
		{"e2e/crash_test.go", "github.com/gocql/gocql", nil},
		{"pipeline/lane_test.go", "github.com/gocql/gocql", []string{"pipeline/lane_test.go " +
			"imports github.com/gocql/gocql: only dedup/cassandra, " +
			"dedup/claimlog/cassandralog, idempotency/cassandra, " +
			"e2e/..., bench/... may"}},
		{"connect/drivers.go", "github.com/jackc/pgx/v5",
			[]string{"connect/drivers.go imports github.com/jackc/pgx/v5: " +
				"only dedup/postgres, idempotency/postgres, examples/..., e2e/... may"}},
		{"pipeline/lane.go", "github.com/twmb/franz-go/pkg/kfake", []string{
			"pipeline/lane.go imports github.com/twmb/franz-go/pkg/kfake: only internal/testkit, " +
				"command, examples/consumer may",
		}},
		{"pipeline/lane_test.go", "github.com/twmb/franz-go/pkg/kfake", nil},
		{"bench/contestants/lwt/main.go", module + "dedup",
			[]string{"bench/contestants/lwt/main.go imports dedup: of this module " +
				"bench/contestants/... may import bench/contestants/member"}},
		{"process/server/browser_test.go", "github.com/chromedp/chromedp", nil},
		{"process/server/page.go", "github.com/chromedp/chromedp", []string{
			"process/server/page.go imports github.com/chromedp/chromedp: only " +
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
		{"process/server/server.go", "testing", []string{
			"process/server/server.go imports testing: only internal/testkit/..., " +
				"dedup/storetest, dedup/claimlog/logtest, idempotency/storetest may"}},
	} {
		got := violations(source{name: c.file, imports: []string{c.imported}})
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s imports %s: -want +got:\n%s", c.file, c.imported, diff)
		}
	}
}
