package process

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kdedup/kdedup/config"
	"github.com/kdedup/kdedup/internal/testkit"
)

func TestAReloadAddsAPipelineBesideTheOthers(t *testing.T) {
	r := startReloading(t, neverLook)
	one, two := r.settled("orders", 2), r.settled("payments", 2)
	r.write(refunds(), orders(), payments()) // the order is of no importance
	if line := r.reload(); !strings.Contains(line, "started=[refunds]") ||
		!strings.Contains(line, "undisturbed=2") {
		t.Error(line)
	}
	r.settled("refunds", 2)
	r.drain("refunds", 10)
	r.untouched("orders", one)
	r.untouched("payments", two)
	if got := r.process.checks()[1].Name; got != "topic refunds" {
		t.Errorf("/readyz begins with %s", got)
	}
}

func TestAReloadRemovesAPipelineAndItsSeries(t *testing.T) {
	r := startReloading(t, neverLook)
	before := r.settled("orders", 2)
	r.settled("payments", 2)
	r.drain("payments", 10)
	r.write(orders())
	if line := r.reload(); !strings.Contains(line, "ended=[payments]") {
		t.Error(line)
	}
	r.untouched("orders", before)
	if left := r.look("payments"); len(left.Members) > 0 {
		t.Errorf("still in the group: %v", left.Members)
	}
	offsets, err := r.admin.FetchOffsets(t.Context(), "payments-dedup")
	if sum := offsets.KOffsets()["payments"]; err != nil || len(sum) == 0 {
		t.Errorf("no committed offsets: %v, %v", sum, err)
	}
	for name, series := range testkit.ReadMetrics(r.t, r.process.registry) {
		for _, s := range series {
			if testkit.HasLabel(s, "topic", "payments") {
				t.Errorf("%s still has a series of payments", name)
			}
		}
	}
}

func TestAReloadStartsAChangedPipelineAnewAndItsCountersGoOn(t *testing.T) {
	r := startReloading(t, neverLook)
	before := r.settled("orders", 2)
	r.settled("payments", 2)
	r.drain("payments", 10)
	r.write(orders(), payments("lanes: 1", "ttl: 1h", "delivery: at_least_once"))
	if line := r.reload(); !strings.Contains(line, "started=[payments]") ||
		!strings.Contains(line, "ended=[payments]") {
		t.Error(line)
	}
	if after := r.settled("payments", 1); len(after.Members) != 1 {
		t.Errorf("members: %v", after.Members)
	}
	r.untouched("orders", before)
	r.drain("payments", 10)
	m := testkit.ReadMetrics(r.t, r.process.registry)
	if got := m.Value(
		"kdedup_records_total", "topic", "payments", "outcome", "forwarded",
	); got != r.sent["payments"] {
		t.Errorf("%v records were forwarded, as the counter says; there were %v", got,
			r.sent["payments"])
	}
	if got := m.Value("kdedup_ttl_seconds", "topic", "payments"); got != 3600 {
		t.Errorf("the TTL in the metrics is %v s", got)
	}
	for _, name := range []string{"kdedup_lane_up", "kdedup_lane_ready", "kdedup_records_in_flight",
		"kdedup_store_blocked"} {
		if got := m.With(name, "topic", "payments"); len(got) != 1 ||
			!testkit.HasLabel(got[0], "lane", "0") {
			t.Errorf("%s has the series %v", name, got)
		}
	}
	if got := m["kdedup_config_info"]; len(got) != 1 ||
		!testkit.HasLabel(got[0], "hash", ConfigHash(r.process.Config())) {
		t.Errorf("kdedup_config_info is %v", got)
	}
}

// Whatever a file asks for that cannot be done: nothing of it is done, the reason stands in the log
// and the metric tells.
func TestARefusedConfigurationChangesNothing(t *testing.T) {
	r := startReloading(t, neverLook)
	one, two := r.settled("orders", 2), r.settled("payments", 2)
	since := r.value("kdedup_config_last_reload_success_timestamp_seconds")
	topics := "topics:\n" + orders() + payments()
	for _, c := range []struct {
		name, text string
		want       []string
	}{
		{"broken YAML", "topics: [", []string{"line 1"}},
		{"two mistakes, and both are told", r.head + "topics:\n" + orders("lane: 2") +
			payments("ttl: never"), []string{"topics[0].lane", "topics[1].ttl"}},
		{"no topics", r.head, []string{"topics: is required"}},
		{
			"what belongs to the process", r.head +
				"shutdown_timeout: 7s\nmetrics: {per_partition: false}\nlog: {format: json}\n" +
				topics,
			[]string{"restart to apply: shutdown_timeout, metrics.per_partition, log.format"},
		},
		{"another broker", strings.Replace(r.head, "brokers: [", "brokers: [other,", 1) + topics,
			[]string{"restart to apply: kafka.brokers"}},
		{"another store", strings.Replace(r.head, `embedded: {path: "`, `embedded: {path: "/other`,
			1) + topics, []string{"restart to apply: store.embedded.path"}},
		{"another input", r.head + "topics:\n" + orders() + strings.Replace(payments(),
			"input: payments", "input: refunds", 1), []string{
			"topics[1].input: was payments and is now refunds",
			"topics[1].scope: was payments and is now refunds",
		}},
		{"another scope", r.head + "topics:\n" + orders("scope: other") + payments(), []string{
			"topics[0].scope: was orders and is now other: copies of what was forwarded so far " +
				"would be forwarded; set it back, or restart if that is meant",
		}},
		{"another scope group", r.head + "topics:\n" + orders("scope_group: other") + payments(),
			[]string{"topics[0].scope_group: was orders-dedup and is now other"}},
		{"another fence topic", r.head + "topics:\n" + orders("fence_topic: refunds-dedup.fence") +
			payments(), []string{
			"topics[0].fence_topic: was orders-dedup.fence and is now refunds-dedup.fence",
		}},
		{"other buckets, beside a change that is good",
			r.head + "topics:\n" + orders("buckets: 7") + payments("ttl: 1h"), []string{
				"topics[0]: scope orders-dedup/orders: the scope was registered with other " +
					"settings: buckets was 128 and is now 7", "set buckets back",
			}},
		{"another message ID", r.head + "topics:\n" + orders() + strings.Replace(payments(),
			"{from: key}", "{from: value_hash}", 1), []string{
			"topics[1]: scope payments-dedup/payments", "message_id was key and is now value_hash",
		}},
		{"a pipeline without topics, in the place of a good one", r.head + "topics:\n" + orders() +
			pipelineOf("returns"), []string{
			"topics[1]: input topic returns does not exist", "tried_again_in=30s",
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r.writeText(c.text)
			line := r.reload()
			for _, want := range append(c.want, "configuration refused") {
				if !strings.Contains(line, want) {
					t.Errorf("%q is missing in: %s", want, line)
				}
			}
			if r.value("kdedup_config_last_reload_successful") != 0 ||
				r.value("kdedup_config_last_reload_success_timestamp_seconds") != since {
				t.Error("the metrics do not tell")
			}
		})
	}
	r.untouched("orders", one)
	r.untouched("payments", two)
	r.write(orders(), payments())
	r.reload()
	if r.value("kdedup_config_last_reload_successful") != 1 ||
		r.value("kdedup_config_last_reload_success_timestamp_seconds") <= since {
		t.Error("the metrics do not tell that all is well again")
	}
}

// A scope that was registered for a pipeline that then does not come would stand in the way of the
// next try.
func TestARefusedPipelineLeavesNoScopeBehind(t *testing.T) {
	r := startReloading(t, neverLook)
	r.drain("orders", 1) // a scope without claims could be registered again
	r.write(orders("buckets: 7"), payments(), refunds("buckets: 64"))
	if line := r.reload(); !strings.Contains(line, "buckets was 128 and is now 7") {
		t.Error(line)
	}
	r.write(orders(), payments(), refunds("buckets: 32"))
	if line := r.reload(); !strings.Contains(line, "started=[refunds]") {
		t.Error(line)
	}
}

func TestAReloadChangesTheLogLevel(t *testing.T) {
	r := startReloading(t, neverLook)
	before := r.settled("orders", 2)
	r.writeText(r.head + "log: {level: debug}\ntopics:\n" + orders() + payments())
	r.reload()
	if got := r.process.level.Level(); got != slog.LevelDebug {
		t.Errorf("the level is %v", got)
	}
	r.untouched("orders", before)
	testkit.Eventually(t, time.Minute, "a line of that level", func() bool {
		return strings.Contains(r.log.String(), "level=DEBUG")
	})
}

// Its lanes rejoin in pauses of up to 15 s; an operator who has fixed the cause and says so need
// not wait for them.
func TestAReloadStartsAFailingPipelineAnew(t *testing.T) {
	r := startReloading(t, neverLook)
	before := r.settled("orders", 2)
	r.settled("payments", 2)
	var broken atomic.Bool
	broken.Store(true)
	r.cluster.ControlKey(int16(kmsg.InitProducerID),
		func(request kmsg.Request) (kmsg.Response, error, bool) {
			r.cluster.KeepControl()
			init := request.(*kmsg.InitProducerIDRequest)
			if init.TransactionalID == nil ||
				!strings.HasPrefix(*init.TransactionalID, "refunds") || !broken.Load() {
				return nil, nil, false
			}
			response := init.ResponseKind().(*kmsg.InitProducerIDResponse)
			response.ErrorCode = kerr.TransactionalIDAuthorizationFailed.Code
			return response, nil, true
		})
	r.write(orders(), payments(), refunds())
	r.reload()
	refunds := r.process.active.Load().find("refunds-dedup")
	testkit.Eventually(t, time.Minute, "a lane that fails again and again", refunds.failing)
	broken.Store(false)
	if line := r.reload(); !strings.Contains(line, "started=[refunds]") ||
		!strings.Contains(line, "undisturbed=2") {
		t.Error(line)
	}
	r.drain("refunds", 10)
	r.untouched("orders", before)
}

func TestManyRequestsAtOnceEndWithTheLastFile(t *testing.T) {
	r := startReloading(t, neverLook)
	before := r.settled("orders", 2)
	for n := range 20 {
		r.write(orders(), payments(fmt.Sprintf("ttl: %dh", n+1)))
		select {
		case r.hangup <- syscall.SIGHUP:
		default: // one waits already, and the file is read after it
		}
	}
	testkit.Eventually(t, time.Minute, "the last file in force", func() bool {
		return r.process.Config().Topics[1].TTL == 20*time.Hour
	})
	r.settled("payments", 2)
	r.untouched("orders", before)
}

func TestAStopDuringAReloadIsAStop(t *testing.T) {
	r := startReloading(t, neverLook)
	r.settled("payments", 2)
	leaving := make(chan struct{})
	var once sync.Once
	r.cluster.ControlKey(int16(kmsg.LeaveGroup), func(kmsg.Request) (kmsg.Response, error, bool) {
		once.Do(func() { close(leaving) })
		return nil, nil, false
	})
	r.write(orders(), payments("ttl: 1h"))
	r.hangup <- syscall.SIGHUP
	<-leaving
	r.stop()
	if err := <-r.ended; err != nil {
		t.Error(err)
	}
	r.ended <- nil // for the end of the test
}

func TestAChangedFileIsAppliedWithoutASignal(t *testing.T) {
	r := startReloading(t, lookOften)
	before := r.settled("orders", 2)
	r.write(orders(), payments(), refunds())
	if line := r.waitOutcome(0); !strings.Contains(line, "started=[refunds]") {
		t.Error(line)
	}
	r.untouched("orders", before)
	r.writeText("topics: [")
	if line := r.waitOutcome(1); !strings.Contains(line, "configuration refused") {
		t.Error(line)
	}
	r.write(orders(), payments(), refunds())
	if line := r.waitOutcome(2); !strings.Contains(line, "undisturbed=3") {
		t.Error(line)
	}
	if n := len(r.outcomes()); n != 3 {
		t.Errorf("%d reloads of three changes", n)
	}
}

// Kubernetes puts a ConfigMap into a directory, and a link with a fixed name in front of it.
func TestASwappedLinkIsAChange(t *testing.T) {
	r := startReloading(t, lookOften)
	mount := t.TempDir()
	put := func(version, text string) {
		t.Helper()
		if err := os.Mkdir(filepath.Join(mount, version), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(
			filepath.Join(mount, version, "kdedup.yaml"), []byte(text), 0o600,
		); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(version, filepath.Join(mount, "..new")); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(
			filepath.Join(mount, "..new"), filepath.Join(mount, "..data"),
		); err != nil {
			t.Fatal(err)
		}
	}
	put("..1", r.head+"topics:\n"+orders()+payments())
	if err := os.Remove(r.path); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(mount, "..data", "kdedup.yaml"), r.path); err != nil {
		t.Fatal(err)
	}
	put("..2", r.head+"topics:\n"+orders())
	testkit.Eventually(t, time.Minute, "the new version in force", func() bool {
		return len(r.process.Config().Topics) == 1
	})
}

func TestASecretsFileIsWatchedToo(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "password")
	rotate := func(text string) {
		t.Helper()
		if err := os.WriteFile(secret, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	rotate("the first one")
	path := filepath.Join(t.TempDir(), "kdedup.yaml")
	with := strings.Replace(head(t, "127.0.0.1:1")+"topics:\n"+orders(), `listen: "127.0.0.1:0"`,
		`listen: "127.0.0.1:0", auth: {username: u, password: "file:`+secret+`"}`, 1)
	if err := os.WriteFile(path, []byte(with), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := config.Load(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	f := NewConfigFile(func() (config.Config, error) { return config.Load(path, nil) },
		nil, time.Second, c)
	rotate("the second one")
	f.changed(time.Now())
	read, changed := f.changed(time.Now())
	if !changed {
		t.Fatal("not seen")
	}
	err = refused(c, read.config)
	if err == nil || err.Error() != "restart to apply: server.auth.password" {
		t.Errorf("got %v", err)
	}
}

func TestWithoutWatchAChangeWaitsForTheSignal(t *testing.T) {
	r := startReloading(t, lookOften)
	head := r.head
	r.head += "reload: {watch: false}\n"
	r.write(orders(), payments())
	r.waitOutcome(0)
	before := r.reads.Load()
	r.write(orders(), payments(), refunds())
	r.drain("orders", 10) // takes much longer than the pause between two looks
	if n := r.reads.Load() - before; n > 0 {
		t.Errorf("the file was read %d times", n)
	}
	if line := r.reload(); !strings.Contains(line, "started=[refunds]") {
		t.Error(line)
	}
	r.head = head
	r.write(orders(), payments(), refunds())
	if line := r.reload(); !strings.Contains(line, "undisturbed=3") {
		t.Error(line)
	}
	r.write(orders(), payments())
	if line := r.waitOutcome(3); !strings.Contains(line, "ended=[refunds]") {
		t.Error(line)
	}
}

// fileOf is a configFile of texts in place of configurations.
func fileOf(readings ...string) *ConfigFile {
	at := 0
	return NewConfigFile(func() (config.Config, error) {
		text := readings[min(at, len(readings)-1)]
		at++
		if strings.HasPrefix(text, "error") {
			return config.Config{}, errors.New(text)
		}
		return config.Config{Instance: text}, nil
	}, nil, time.Second, config.Config{Instance: "a"})
}

func TestAChangeCountsWhenItWasReadTwice(t *testing.T) {
	for _, c := range []struct {
		readings []string
		changed  []bool
	}{
		{[]string{"a", "a", "a"}, []bool{false, false, false}},
		{[]string{"b", "b", "b"}, []bool{false, true, true}}, // until somebody tried it
		{[]string{"half of b", "b", "b"}, []bool{false, false, true}},
		{[]string{"b", "a", "a"}, []bool{false, false, false}},
		// the file was away for a moment
		{[]string{"error", "a", "a"}, []bool{false, false, false}},
		{[]string{"error", "error"}, []bool{false, true}},
	} {
		f := fileOf(c.readings...)
		for i, want := range c.changed {
			if _, got := f.changed(time.Now()); got != want {
				t.Errorf("%q: reading %d is a change: %v", c.readings, i, got)
			}
		}
	}
}

func TestARefusalByTheServersIsTriedAgainAndOneByTheFileIsNot(t *testing.T) {
	for _, retry := range []bool{true, false} {
		f := fileOf("b")
		now := time.Now()
		f.changed(now)
		read, _ := f.changed(now)
		f.known, f.retry, f.triedAt = read, retry, now // as try leaves it
		if _, soon := f.changed(now.Add(retryEvery - time.Second)); soon {
			t.Errorf("retry %v: tried again too soon", retry)
		}
		if _, again := f.changed(now.Add(retryEvery)); again != retry {
			t.Errorf("retry %v: tried again is %v", retry, again)
		}
	}
}

// A variable names an entry by its number, and the file changes before it.
func TestAReloadIsRefusedThatMovesAnOverrideToAnotherEntry(t *testing.T) {
	variables := []string{"KDEDUP_TOPICS_0_TTL=30d", "KDEDUP_TOPICS_1_LANES=3"}
	parse := func(topics ...string) config.Config {
		t.Helper()
		text := "kafka: {brokers: [a]}\ntopics:\n" + strings.Join(topics, "")
		c, _, err := config.Parse("f", []byte(text), variables)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	now := parse(orders(), payments())
	for _, c := range []struct {
		name string
		to   config.Config
		want []string // nothing: it is put in force
	}{
		{"behind them", parse(orders(), payments(), refunds()), nil},
		{"other settings", parse(orders("batch_records: 7"), payments()), nil},
		{"the last one is gone", parse(orders()), nil},
		{"in front of them", parse(refunds(), orders(), payments()), []string{
			"KDEDUP_TOPICS_0_TTL was about the entry of orders, and would be about that of " +
				"refunds: write KDEDUP_TOPICS_ORDERS_TTL in its place",
			"KDEDUP_TOPICS_1_LANES was about the entry of payments, and would be about that of " +
				"orders: write KDEDUP_TOPICS_PAYMENTS_LANES in its place",
		}},
		{"the first one is gone", parse(payments()), []string{
			"KDEDUP_TOPICS_0_TTL was about the entry of orders, and would be about that of payments",
			"KDEDUP_TOPICS_1_LANES was about the entry of payments, and would be about none",
		}},
	} {
		text := ""
		if err := refused(now, c.to); err != nil {
			text = err.Error()
		}
		for _, want := range c.want {
			if !strings.Contains(text, want) {
				t.Errorf("%s: %q is missing in %s", c.name, want, text)
			}
		}
		if (text == "") != (len(c.want) == 0) {
			t.Errorf("%s: %s", c.name, text)
		}
	}
}
