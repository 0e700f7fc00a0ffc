package command

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/kdedup/kdedup/internal/testkit"
)

func TestValidateListsWhatItChecked(t *testing.T) {
	_, brokers := testkit.FakeKafka(t, kfake.SeedTopics(1, "orders"))
	if code, text := kdedup(t.Context(), "setup", "-c", write(t, brokers, ordersTopic)); code != 0 {
		t.Fatal(text)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, broker, store, listen string
		code                        int
		marks                       string // of the checks, in order
		want                        []string
	}{
		{"all is well", brokers[0], filepath.Join(t.TempDir(), "data"), "127.0.0.1:0", 0,
			"✓✓✓✓✓✓✓✓✓✓✓✓", nil},
		{"a directory below a file, and an address that is taken", brokers[0],
			filepath.Join(file, "data"), listener.Addr().String(), 1, "✓✓✓✓✓✓✗✗✗",
			[]string{"✗ the store's directory can be written, where it has one\n   " +
				"store.embedded.path: ", "\n   server.listen: listen tcp " +
				listener.Addr().String()}},
		{"Kafka is not there", nobody(t), filepath.Join(t.TempDir(), "data"), "127.0.0.1:0", 1,
			"✓✗✓-✓✓✓✓", []string{"\n   kafka.brokers: ",
				"- topics, rights, consumer groups, message IDs: not asked"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "kdedup.yaml")
			text := fmt.Sprintf("instance: test\nkafka: {brokers: [%q]}\nstore: {type: embedded, embedded: "+
				"{path: %q}}\nserver: {listen: %q}\ntopics:\n%s",
				c.broker, c.store, c.listen, ordersTopic)
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			code, printed := kdedup(t.Context(), "validate", "-c", path)
			marks := ""
			for line := range strings.Lines(printed) {
				if mark, _, _ := strings.Cut(line, " "); mark == "✓" || mark == "✗" || mark == "-" {
					marks += mark
				}
			}
			if diff := cmp.Diff(c.marks, marks); code != c.code || diff != "" {
				t.Errorf("exit code %d, want %d, marks %s, printed:\n%s", code, c.code, diff,
					printed)
			}
			for _, want := range c.want {
				if !strings.Contains(printed, want) {
					t.Errorf("%q is missing in:\n%s", want, printed)
				}
			}
			if left, _ := filepath.Glob(filepath.Join(filepath.Dir(c.store), ".kdedup-*")); len(
				left) > 0 {
				t.Errorf("left behind: %v", left)
			}
		})
	}
}

// Beside the process that runs with the file, its port is taken.
func TestValidateBesideTheRunningProcessIsContent(t *testing.T) {
	_, brokers := testkit.FakeKafka(t, kfake.SeedTopics(1, "orders"))
	path := writeInLog(t, "test", brokers[0], freeAddress(t), ordersTopic)
	if code, printed := kdedup(t.Context(), "setup", "-c", path, "--skip-self-test"); code != 0 {
		t.Fatal(printed)
	}
	r := start(t, path)
	testkit.Eventually(t, time.Minute, "the process is ready", func() bool {
		return strings.Contains(r.out.String(), "msg=ready")
	})
	code, printed := kdedup(t.Context(), "validate", "-c", path)
	if want := "- the address of server.listen: taken by a process of kdedup"; code != 0 ||
		!strings.Contains(printed, want) {
		t.Errorf("exit code %d, want %q in\n%s", code, want, printed)
	}
	r.stopsWell()
}

func TestAStoreInKafkaIsNotAskedWhereKafkaDoesNotAnswer(t *testing.T) {
	path := writeInLog(t, "test", nobody(t), "127.0.0.1:0", ordersTopic)
	code, printed := kdedup(t.Context(), "validate", "-c", path)
	for _, want := range []string{"✗ Kafka answers\n   kafka.brokers: ",
		"- the store and its scopes: not asked, because Kafka does not answer"} {
		if code != 1 || !strings.Contains(printed, want) ||
			strings.Contains(printed, "✓ the store answers") {
			t.Errorf("exit code %d, want %q in\n%s", code, want, printed)
		}
	}
}

func TestValidateListsWhatAPatternMatches(t *testing.T) {
	_, brokers := testkit.FakeKafka(t, kfake.SeedTopics(1, "tenant-a", "tenant-b", "other"))
	entry := func(prefix string) string {
		return fmt.Sprintf("  - {input: {pattern: 'tenant-.*'}, output: \"%s{topic}.clean\", "+
			"consumer_group: \"%s{topic}\", message_id: {from: key}, on_missing_id: drop}\n",
			prefix, prefix)
	}
	path := write(t, brokers, entry(""))
	if code, text := kdedup(t.Context(), "setup", "-c", path, "--skip-self-test"); code != 0 {
		t.Fatal(text)
	}
	code, text := kdedup(t.Context(), "validate", "-c", path)
	for _, want := range []string{
		"✓ topics[0].input.pattern matches 2 topics now: tenant-a, tenant-b\n", "is valid: 2 topics",
		"✓ about ", " series in /metrics of a process that has all partitions, ",
	} {
		if code != 0 || !strings.Contains(text, want) {
			t.Errorf("exit code %d, want %q in\n%s", code, want, text)
		}
	}
	shared := write(t, brokers, entry("")+"metrics: {per_topic: summed}\n")
	code, text = kdedup(t.Context(), "validate", "-c", shared)
	if want := "; the topics of tenant-.* share some (metrics.per_topic: summed)\n"; code != 0 ||
		!strings.Contains(text, want) {
		t.Errorf("exit code %d, want %q in\n%s", code, want, text)
	}
	code, text = kdedup(t.Context(), "validate", "-c", write(t, brokers, entry("")+entry("x.")))
	want := "topics[1].input.pattern: matches tenant-a, as the pattern of topics[0] does"
	if code != 1 || !strings.Contains(text, want) {
		t.Errorf("exit code %d, want %q in\n%s", code, want, text)
	}
	code, text = kdedup(t.Context(), "id", "lookup", "1", "-c", path, "--topic", "orders")
	if want := "a topic that matches tenant-.*"; code != 2 || !strings.Contains(text, want) {
		t.Errorf("exit code %d, want %q in\n%s", code, want, text)
	}
	if code, text = kdedup(t.Context(), "report", "-c", path, "--topic", "tenant-a"); code != 0 {
		t.Errorf("exit code %d\n%s", code, text)
	}
}
