package torture

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/goleak"

	"github.com/kdedup/kdedup/internal/testkit"
	"github.com/kdedup/kdedup/lab/workload"
)

// The test binary is also the command that is tortured.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "deduplicate" {
		if os.Args[5] == "rest" {
			time.Sleep(2 * time.Second) // it is another program, which a test kills
		}
		err := deduplicate(os.Args[2], os.Args[3], os.Args[4], os.Args[5] == "remember")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	goleak.VerifyTestMain(m)
}

// deduplicate copies the first record of each ID. It reads the input from its beginning, and what
// is on the clean topic already if it is to remember.
func deduplicate(brokers, input, clean string, remember bool) error {
	ctx := context.Background()
	brokers, output, apart := strings.Cut(brokers, "/")
	if !apart {
		output = brokers
	}
	connection := []kgo.Opt{kgo.SeedBrokers(brokers)}
	there := []kgo.Opt{kgo.SeedBrokers(output), kgo.RecordPartitioner(kgo.ManualPartitioner())}
	seen := make(map[string]bool)
	if remember {
		err := workload.Read(ctx, there, clean, func(r *kgo.Record) bool {
			seen[string(r.Headers[0].Value)] = true
			return true
		})
		if err != nil {
			return err
		}
	}
	client, err := kgo.NewClient(append(connection, kgo.ConsumeTopics(input))...)
	if err != nil {
		return err
	}
	producer, err := kgo.NewClient(there...)
	if err != nil {
		return err
	}
	for {
		for _, r := range client.PollFetches(ctx).Records() {
			if id := string(r.Headers[0].Value); !seen[id] {
				seen[id] = true
				r.Topic = clean
				if err := producer.ProduceSync(ctx, r).FirstErr(); err != nil {
					return err
				}
			}
		}
	}
}

func plan(t *testing.T, command ...string) Plan {
	t.Helper()
	_, brokers := testkit.FakeKafka(t)
	for i, arg := range command {
		command[i] = strings.ReplaceAll(arg, "BROKERS", brokers[0])
	}
	records := workload.Default()
	records.Records, records.Partitions = 2000, 1
	return Plan{
		Records: records, Connection: []kgo.Opt{kgo.SeedBrokers(brokers...)}, Input: "in",
		Clean: "clean", Command: append([]string{os.Args[0]}, command...), Processes: 1, Kills: 4,
		During: 4 * time.Second, Patience: 4 * time.Second, Seed: 7,
		Step: func(format string, args ...any) { t.Logf(format, args...) },
	}
}

func TestACommandThatRemembersPasses(t *testing.T) {
	t.Parallel()
	report, err := Run(t.Context(), plan(t, "deduplicate", "BROKERS", "in", "clean", "remember"))
	if err != nil {
		t.Fatal(err)
	}
	if report.Messages == 0 || report.Messages >= report.Records || report.Kills != 4 ||
		report.Ended != 0 {
		t.Errorf("got %+v", report)
	}
	if diff := cmp.Diff(workload.Found{Records: report.Messages}, report.Clean); diff != "" {
		t.Errorf("clean topic: -want +got:\n%s", diff)
	}
}

// Both topics may have one name there.
func TestTheCleanTopicMayBeOnAnotherCluster(t *testing.T) {
	t.Parallel()
	for how, doubles := range map[string]bool{"remember": false, "forget": true} {
		_, there := testkit.FakeKafka(t)
		p := plan(t, "deduplicate", "BROKERS/"+there[0], "in", "in", how)
		p.CleanConnection, p.Clean = []kgo.Opt{kgo.SeedBrokers(there...)}, p.Input
		report, err := Run(t.Context(), p)
		if err != nil {
			t.Fatal(err)
		}
		if c := report.Clean; c.Lost != 0 || (c.Doubled > 0) != doubles || report.Kills != 4 {
			t.Errorf("%s: got %+v", how, report)
		}
	}
}

func TestACommandThatForgetsIsFound(t *testing.T) {
	t.Parallel()
	report, err := Run(t.Context(), plan(t, "deduplicate", "BROKERS", "in", "clean", "forget"))
	if err != nil {
		t.Fatal(err)
	}
	if c := report.Clean; c.Lost != 0 || c.Doubled == 0 || c.Err() == nil {
		t.Errorf("got %+v", report)
	}
}

// Each start of this command forwards from the first message on, but only after a rest. A kill
// while it rests would double nothing.
func TestAProcessIsNotKilledBeforeItWorks(t *testing.T) {
	t.Parallel()
	p := plan(t, "deduplicate", "BROKERS", "in", "clean", "rest")
	p.During = time.Second
	report, err := Run(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	if c := report.Clean; report.Kills != p.Kills || report.AtRest != 0 || c.Doubled < p.Kills {
		t.Errorf("got %+v", report)
	}
}

func TestACommandThatDoesNothingIsKilledAfterALongTimeAndThatIsTold(t *testing.T) {
	t.Parallel()
	p := plan(t)
	var told string
	p.Step = func(format string, args ...any) { told = fmt.Sprintf(format, args...) }
	client, err := kgo.NewClient(append(p.Connection, kgo.DefaultProduceTopic("clean"))...)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	admin := kadm.NewClient(client)
	if _, err := admin.CreateTopic(t.Context(), 3, 1, nil, "clean"); err != nil {
		t.Fatal(err)
	}
	turns := newTurns(p, admin, nil)
	turns.longest = 200 * time.Millisecond
	if err := turns.begin(t.Context()); err != nil {
		t.Fatal(err)
	}
	turns.news = map[int32]bool{0: true, 2: true}
	if err := client.ProduceSync(t.Context(), kgo.StringRecord("one")).FirstErr(); err != nil {
		t.Fatal(err)
	}
	if err := turns.waitForWork(t.Context()); err != nil || turns.atRest != 1 ||
		told != "clean has grown on 1 partitions within 200ms, and there are new messages on 2: "+
			"a process is killed nevertheless" {
		t.Errorf("%d at rest, told %q, %v", turns.atRest, told, err)
	}
}

func TestKillsNeedRecords(t *testing.T) {
	p := Plan{Records: workload.Default(), Kills: 20}
	p.Records.Records = 209
	if err := p.Validate(); err == nil ||
		err.Error() != "20 kills need at least 210 records, got 209" {
		t.Errorf("got %v", err)
	}
	p.Records.Records = 210
	if err := p.Validate(); err != nil {
		t.Error(err)
	}
}

func TestACommandThatOnlyEndsIsToldWithItsWords(t *testing.T) {
	t.Parallel()
	p := plan(t, "deduplicate", "BROKERS", "in", "no such topic", "remember")
	p.During = time.Minute
	_, err := Run(t.Context(), p)
	if err == nil || !strings.Contains(err.Error(), "process 0 ended by itself 10 times") ||
		!strings.Contains(err.Error(), "UNKNOWN_TOPIC_OR_PARTITION") &&
			!strings.Contains(err.Error(), "INVALID_TOPIC") {
		t.Errorf("got %v", err)
	}
}

func TestTopicsWithRecordsOrOtherPartitionsAreRefused(t *testing.T) {
	t.Parallel()
	p := plan(t)
	client, err := kgo.NewClient(append(p.Connection, kgo.DefaultProduceTopic("in"))...)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	admin := kadm.NewClient(client)
	for topic, partitions := range map[string]int32{"in": 1, "clean": 3} {
		if _, err := admin.CreateTopic(t.Context(), partitions, 1, nil, topic); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := Run(t.Context(), p); err == nil ||
		!strings.Contains(err.Error(), "topic clean has 3 partitions, want 1") {
		t.Errorf("got %v", err)
	}
	if err := client.ProduceSync(t.Context(), kgo.StringRecord("old")).FirstErr(); err != nil {
		t.Fatal(err)
	}
	if _, err := Run(t.Context(), p); err == nil ||
		!strings.Contains(err.Error(), "topic in is not empty") {
		t.Errorf("got %v", err)
	}
}

func TestTheNumberOfAProcessStandsInItsArguments(t *testing.T) {
	w := newWorker(2, []string{"run", "--listen", ":808{process}"}, nil)
	if diff := cmp.Diff([]string{"run", "--listen", ":8082"}, w.args); diff != "" {
		t.Error(diff)
	}
}
