package command

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"

	"github.com/kdedup/kdedup/internal/testkit"
	"github.com/kdedup/kdedup/process/redrive"
)

// deadLetters has a pipeline that looks for IDs in the wrong place dead-letter some records, and
// corrects its file.
func deadLetters(t *testing.T, brokers []string, ids ...string) (path string) {
	t.Helper()
	client := testkit.KafkaClient(t, brokers)
	for _, id := range ids {
		r := &kgo.Record{Topic: "orders", Key: []byte(id), Value: []byte(id)}
		if err := client.ProduceSync(t.Context(), r).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	// An input without a single ID is taken for a mistake, and no dead letters are made of it.
	if err := client.ProduceSync(t.Context(), &kgo.Record{Topic: "orders",
		Headers: []kgo.RecordHeader{{Key: "id", Value: []byte("first")}}}).FirstErr(); err != nil {
		t.Fatal(err)
	}
	path = write(t, brokers, strings.Replace(ordersTopic, "{from: key}",
		"{from: header, name: id}", 1)+"    duplicates_topic: orders.dup\n")
	if code, text := kdedup(t.Context(), "setup", "-c", path, "--skip-self-test"); code != 0 {
		t.Fatal(text)
	}
	runUntilRead(t, path, "forwarded", 1)
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	fixed := strings.Replace(string(text), "{from: header, name: id}", "{from: key}", 1) +
		"    scope: orders-by-key\n"
	if err := os.WriteFile(path, []byte(fixed), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// runUntilRead runs until an outcome is counted.
func runUntilRead(t *testing.T, path, outcome string, n int) {
	t.Helper()
	r := start(t, path)
	url := r.url()
	testkit.Eventually(t, time.Minute, outcome, func() bool {
		return strings.Contains(get(t, url+"/metrics"),
			`kdedup_records_total{outcome="`+outcome+`",topic="orders"} `+string(rune('0'+n)))
	})
	r.stopsWell()
}

func redriveReport(t *testing.T, path string, args ...string) redrive.Report {
	t.Helper()
	report, said := redriveEnding(t, 0, path, args...)
	if said != "" {
		t.Fatalf("%v: behind the report stands %s", args, said)
	}
	return report
}

// redriveEnding returns what is printed behind the report, too.
func redriveEnding(
	t *testing.T, want int, path string, args ...string,
) (report redrive.Report, said string) {
	t.Helper()
	code, text := kdedup(t.Context(), append([]string{"redrive", "-c", path, "--yes",
		"--format", "json"}, args...)...)
	_, text, _ = strings.Cut(text, "{")
	document, said, _ := strings.Cut("{"+text, "\n}\n")
	if err := json.Unmarshal([]byte(document+"}"), &report); code != want || err != nil {
		t.Fatalf("%v: exit code %d, %v:\n%s", args, code, err, text)
	}
	return report, said
}

func TestDeadLettersAreRedrivenOnceTheirCauseIsFixed(t *testing.T) {
	_, brokers := testkit.FakeKafka(t, kfake.SeedTopics(1, "orders"))
	path := deadLetters(t, brokers, "a", "b", "c")
	if report := redriveReport(t, path, "--into", "clean", "--dry-run"); report.Redriven != 3 ||
		!report.DryRun {
		t.Errorf("%+v", report)
	}
	if code, text := kdedup(t.Context(), "redrive", "-c", path, "--into", "clean"); code != 1 ||
		!strings.Contains(text, "Redrive up to 3 records of orders.dlq into orders.clean? [y/N]") ||
		!strings.Contains(text, "nothing was changed") {
		t.Errorf("without an answer: %d:\n%s", code, text)
	}
	if report := redriveReport(t, path, "--into", "clean", "--id", "b"); report.Redriven != 1 ||
		report.NotSelected != 2 {
		t.Errorf("%+v", report)
	}
	if report := redriveReport(t, path, "--into", "input", "--reason", "missing_id",
		"--offset", "0"); report.Redriven != 1 {
		t.Errorf("%+v", report)
	}
	if code, text := kdedup(t.Context(), "id", "lookup", "-c", path, "b"); code != 0 ||
		!strings.Contains(text, "by kdedup redrive, of the letter at orders.dlq[0]@1") {
		t.Errorf("lookup: %d:\n%s", code, text)
	}
	produceKeys(t, brokers, "orders", "b")
	runUntilRead(t, path, "forwarded", 1)
	if report := redriveReport(t, path, "--into", "clean"); report.Redriven != 1 ||
		report.Earlier != 2 {
		t.Errorf("%+v", report)
	}
	seen := make(map[string]int)
	testkit.ReadCommitted(t, "orders.clean", func(r *kgo.Record) { seen[string(r.Key)]++ },
		kgo.SeedBrokers(brokers...))
	for _, id := range []string{"a", "b", "c"} {
		if seen[id] != 1 {
			t.Errorf("%s is %d times on the clean topic", id, seen[id])
		}
	}
	code, text := kdedup(t.Context(), "redrive", "-c", path, "--into", "clean", "-y")
	if code != 0 || !strings.Contains(text, "3  redriven before") {
		t.Errorf("%d:\n%s", code, text)
	}
}

// What such a topic forgets would be redriven again.
func TestARedriveWhoseMarksWouldBeDeletedIsRefused(t *testing.T) {
	_, brokers := testkit.FakeKafka(t, kfake.SeedTopics(1, "orders", "orders-dedup.redrive"))
	path := deadLetters(t, brokers, "a")
	code, text := kdedup(t.Context(), "redrive", "-c", path, "--into", "clean", "--yes")
	if code != 1 || !strings.Contains(text,
		"topic orders-dedup.redrive must have cleanup.policy=compact") {
		t.Errorf("%d:\n%s", code, text)
	}
}

func TestARedriveWithoutTransactionsIsRefused(t *testing.T) {
	v := kversion.Stable()
	v.SetMaxKeyVersion(int16(kmsg.EndTxn), -1)
	_, brokers := testkit.FakeKafka(t, kfake.SeedTopics(1, "orders"), kfake.MaxVersions(v))
	path := write(t, brokers, ordersTopic+"    delivery: at_least_once\n")
	if code, text := kdedup(t.Context(), "setup", "-c", path, "--skip-self-test"); code != 0 {
		t.Fatal(text)
	}
	code, text := kdedup(t.Context(), "redrive", "-c", path, "--into", "clean", "--yes")
	if code != 1 || !strings.Contains(text, "a redrive needs Kafka transactions, whatever the "+
		"delivery: the brokers, or a proxy before them, do not answer EndTxn") {
		t.Errorf("%d:\n%s", code, text)
	}
}

func TestARedriveBesideTheProcessThatHasTheStoreSaysWhatToDo(t *testing.T) {
	_, brokers := testkit.FakeKafka(t, kfake.SeedTopics(1, "orders"))
	path := deadLetters(t, brokers, "a")
	r := start(t, path)
	r.url()
	code, text := kdedup(t.Context(), "redrive", "-c", path, "--into", "input", "--yes")
	if code != 1 || !strings.Contains(text, "Redrive on the status page of the process that runs") {
		t.Errorf("%d:\n%s", code, text)
	}
	r.stopsWell()
}

func TestARedriveThatSaysTooLittleOrTooMuchIsAUsageError(t *testing.T) {
	path := write(t, []string{"127.0.0.1:1"}, ordersTopic)
	without := write(t, []string{"127.0.0.1:1"}, strings.Replace(ordersTopic,
		"    dead_letter_topic: orders.dlq\n", "    on_missing_id: drop\n", 1))
	fenced := write(t, []string{"127.0.0.1:1"}, ordersTopic+
		"    fence_topic: orders-dedup.redrive\n")
	into := path + " --into input "
	for want, args := range map[string]string{
		"say where the records go: --into clean or --into input": path,
		"must be clean or input":                                 path + " --into there",
		"the entry of orders has no duplicates_topic":            into + "--duplicates",
		"the entry of orders has no dead_letter_topic":           without + " --into clean",
		"--conflicts needs --into clean":                         into + "--conflicts",
		"--limit must not be negative, got -1":                   into + "--limit -1",
		"--max-redrives must be at least 1":                      into + "--max-redrives 0",
		"--format json needs --yes":                              into + "--json",
		"--reason must be missing_id, missing_id_absent,":        into + "--reason x",
		"--hex: ":                                      into + "--hex --id xyz",
		"--offset must be an offset or a range":        into + "--offset a",
		"--offset must not end before it begins":       into + "--offset 5-3",
		"--from must be a time":                        into + "--from soon",
		"--from must be before --to":                   into + "--from 1h --to 2h",
		"and that is the fence_topic: give this entry": fenced + " --into input",
	} {
		code, text := kdedup(t.Context(), strings.Fields("redrive -c "+args)...)
		if code != exitUsage || !strings.Contains(text, want) {
			t.Errorf("%v: exit code %d, want %q:\n%s", args, code, want, text)
		}
	}
}
