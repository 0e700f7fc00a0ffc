package process

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/config"
	"github.com/kdedup/kdedup/internal/telemetry"
	"github.com/kdedup/kdedup/internal/testkit"
)

// many makes topics of three partitions.
func (r *reloading) many(from, to int) {
	r.t.Helper()
	for i := from; i < to; i++ {
		if _, err := r.admin.CreateTopic(r.t.Context(), 3, 1, nil, tenant(i)); err != nil {
			r.t.Fatal(err)
		}
	}
}

func tenant(i int) string { return fmt.Sprintf("tenant-%d", i) }

// copies puts a message and its copy on each partition of the topics.
func (r *reloading) copies(topics int) {
	r.t.Helper()
	client := testkit.KafkaClient(r.t, r.cluster.ListenAddrs())
	for i := range topics {
		for partition := range int32(3) {
			one := kgo.Record{Topic: tenant(i), Partition: partition,
				Key: fmt.Append(nil, partition)}
			copied := one
			if err := client.ProduceSync(r.t.Context(), &one, &copied).FirstErr(); err != nil {
				r.t.Fatal(err)
			}
		}
	}
}

// waitCopies returns when each topic has forwarded what it has, and the lag is known.
func (r *reloading) waitCopies(topics int) {
	r.t.Helper()
	for i := range topics {
		r.waitRunning(tenant(i), true)
	}
	r.copies(topics)
	testkit.Eventually(r.t, time.Minute, "a copy on each partition", func() bool {
		m := testkit.ReadMetrics(r.t, r.process.registry)
		of := func(family string) (n int) {
			for _, s := range m[family] {
				if strings.HasPrefix(telemetry.Label(s, "topic"), "tenant-") {
					n++
				}
			}
			return n
		}
		lags := 3 * topics
		if !r.process.active.Load().file.Metrics.PerPartition {
			return of("kdedup_consumer_lag") == topics &&
				m.Value("kdedup_verdicts_total") >= float64(6*topics)
		}
		return of("kdedup_partition_duplicates_total") == lags && of("kdedup_consumer_lag") == lags
	})
}

// shown counts the series of a scrape, and those with a topic that is the pattern or of it.
func (r *reloading) shown() (all int, names map[string]bool) {
	r.t.Helper()
	families, err := r.process.Shown().Gather()
	if err != nil {
		r.t.Fatal(err)
	}
	names = make(map[string]bool)
	for _, f := range families {
		names[f.GetName()] = true
		for _, m := range f.GetMetric() {
			all++
			if f.GetType() == dto.MetricType_HISTOGRAM {
				all += len(m.GetHistogram().GetBucket()) + 2
			}
		}
	}
	return all, names
}

func (r *reloading) restart(text string) {
	r.t.Helper()
	r.stop()
	if err := <-r.ended; err != nil {
		r.t.Fatal(err)
	}
	r.process.Close()
	r.log = testkit.Printed{}
	r.writeText(text)
	r.run(neverLook)
	r.waitReady()
}

// Topics of a pattern share series once they are more than twenty, while the process runs, too. All
// families are shown whatever the setting, and their number is told beforehand.
func TestAPatternOfManyTopicsHasFewSeries(t *testing.T) {
	r := startReloading(t, neverLook)
	const topics = 30
	r.many(0, 20)
	pattern := strings.Replace(tenants("auto_setup: true"), "lanes: 1", "lanes: 2", 1)
	r.write(pattern)
	r.reload()
	r.waitCopies(20)
	before, families := r.shown()
	if before < 200*20 {
		t.Errorf("%d series of 20 topics, which should share none", before)
	}
	r.many(20, topics)
	r.waitCopies(topics)
	partitions := make(map[string]int)
	for i := range topics {
		partitions[tenant(i)] = 3
	}
	head := r.head + "topics:\n" + pattern
	counts := make(map[string]int)
	for _, c := range []struct {
		name, settings string
		least, most    int // of a topic
	}{
		{"as it grew", "", 0, 60},
		{"auto", "metrics: {per_topic: auto}\n", 0, 60},
		{"without partitions", "metrics: {per_partition: false}\n", 0, 52},
		{"summed", "metrics: {per_topic: summed}\n", 0, 60},
		{"all", "metrics: {per_topic: all}\n", 200, 400},
		{"all, without partitions", "metrics: {per_topic: all, per_partition: false}\n", 200, 400},
	} {
		if c.name != "as it grew" {
			r.restart(c.settings + head)
			r.waitCopies(topics)
		}
		all, now := r.shown()
		counts[c.name] = all
		if of := all / topics; of < c.least || of >= c.most {
			t.Errorf("%s: %d series of %d topics, %d of each", c.name, all, topics, of)
		}
		for family := range families {
			if strings.HasSuffix(family, "_errors_total") {
				continue // there are series of it only after an error
			}
			if !now[family] && !(family == "kdedup_partition_duplicates_total" &&
				strings.Contains(c.settings, "per_partition: false")) {
				t.Errorf("%s: no series of %s", c.name, family)
			}
		}
		active := r.process.active.Load()
		told := CountSeries(active.file, active.config.Topics, partitions, 1)
		if told.All < all*8/10 || told.All > all*12/10 {
			t.Errorf("%s: told are %d series, shown %d", c.name, told.All, all)
		}
	}
	for _, less := range []string{"", "all"} {
		with, without := counts["auto"], counts["without partitions"]
		if less == "all" {
			with, without = counts["all"], counts["all, without partitions"]
		}
		if with-without < 8*topics {
			t.Errorf("per_partition: false leaves %d of %d series", without, with)
		}
	}
}

// An expression that compares two families by topic finds both under the same topic.
func TestBoardsAndAlertsCompareOnlyWhatHasTheSameTopics(t *testing.T) {
	rules, err := filepath.Glob("../charts/kdedup/*/*")
	if err != nil || len(rules) < 5 {
		t.Fatal(rules, err)
	}
	family := regexp.MustCompile(`kdedup_[a-z0-9_]+`)
	shared := func(name string) bool {
		name = strings.TrimSuffix(strings.TrimSuffix(name, "_bucket"), "_count")
		return addedUp(name) || strings.HasSuffix(name, "_duration_seconds") ||
			slices.Contains([]string{"kdedup_end_to_end_seconds", "kdedup_duplicate_age_seconds"},
				name)
	}
	expressions := 0
	for _, file := range rules {
		if !strings.Contains(file, "dashboards") && !strings.Contains(file, "rules") {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, expr := range regexp.MustCompile(`(?ms)expr"?: (".*?[^\\]"|\|.*?(\n\s+(for|labels|- record):))`).
			FindAllString(string(text), -1) {
			if !regexp.MustCompile(`by \([^)]*topic`).MatchString(expr) {
				continue
			}
			expressions++
			names := family.FindAllString(expr, -1)
			for _, name := range names {
				if len(names) > 1 && shared(name) != shared(names[0]) &&
					!slices.Contains([]string{"kdedup_store_up", "kdedup_started"}, name) {
					t.Errorf("%s: of %v some are added up over topics, and others not:\n%s", file,
						names, expr)
				}
			}
		}
	}
	if expressions < 20 {
		t.Errorf("only %d expressions by topic were found", expressions)
	}
}

// A lane has a client to each of two clusters. Topics share the series of both.
func TestTopicsShareTheSeriesOfTheirClientsToBothClusters(t *testing.T) {
	one := config.Topic{Input: "a", ConsumerGroup: "a-dedup", Lanes: 1}
	file := config.Config{Instance: "one", Topics: []config.Topic{one},
		Metrics: config.Metrics{PerTopic: config.PerTopicSummed}}
	shared := new(sharing).groups(file, file.Topics).Clients
	for _, which := range []string{"", ofInput, ofOutput} {
		if got := shared["a-dedup-one-0"+which].Name; got != namedTopics+which {
			t.Errorf("client %q is of %q", which, got)
		}
	}
	partitions := map[string]int{"a": 1}
	more := CountSeries(file, file.Topics, partitions, 3, 2).All -
		CountSeries(file, file.Topics, partitions, 3).All
	if want := ofClient + 2*ofBroker; more != want {
		t.Errorf("another cluster of two brokers has %d series, want %d", more, want)
	}
}
