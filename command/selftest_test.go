package command

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/kdedup/kdedup/internal/testkit"
	"github.com/kdedup/kdedup/internal/testkit/cqltest"
)

// writeWithStore is write with another store.
func writeWithStore(t *testing.T, brokers []string, store string) (path string) {
	t.Helper()
	path = write(t, brokers, ordersTopic)
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	text = regexp.MustCompile(`(?m)^store: .*$`).ReplaceAll(text, []byte("store: "+store))
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestSetupSaysWhatTheStoreDoesAndLeavesNothingBehind(t *testing.T) {
	_, brokers := testkit.FakeKafka(t, kfake.SeedTopics(1, "orders"))
	dir := t.TempDir()
	path := writeWithStore(t, brokers, fmt.Sprintf("{type: embedded, embedded: {path: %q}}",
		filepath.Join(dir, "not", "yet", "there")))
	code, text := kdedup(t.Context(), "setup", "-c", path)
	t.Log(text) // docs/stores.md shows it
	for _, want := range []string{
		`(?m)^self-test of the store embedded:$`,
		`(?m)^  ok  a first claim +applied  +[\d.]+[mµ]?s$`,
		`(?m)^  ok  the same record again, as after a lost answer +refused: it owns the ID already `,
		`(?m)^  ok  another record with this ID +refused: the owner is returned `,
		`(?m)^  ok  a batch with one known ID +the known ID refused, the others applied `,
		`(?m)^  ok  a claim at the end of its ttl +free again after [1-9]\d*\.\d s, with a ttl of 1s `,
		`(?m)^  ok  clean-up +nothing is left `,
	} {
		if !regexp.MustCompile(want).MatchString(text) {
			t.Errorf("%q is missing", want)
		}
	}
	if code != 0 {
		t.Errorf("exit code %d", code)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestAStoreThatFailsTheSelfTestFailsTheSetup(t *testing.T) {
	_, brokers := testkit.FakeKafka(t, kfake.SeedTopics(1, "orders"))
	server := cqltest.Start(t, cqltest.Dialect{UnconditionalBatches: true})
	configured := func(more string) string {
		return writeWithStore(t, brokers,
			fmt.Sprintf("{type: cassandra, cassandra: {hosts: [%q]%s}}", server.Addr(), more))
	}
	for _, c := range []struct {
		name string
		args []string
		code int
		want []string
		not  string
	}{
		{"batches are refused", []string{"-c", configured("")}, 1, []string{
			"created table kdedup.processed_messages", "created topic orders-dedup.fence",
			"  ok      a first claim", "  FAILED  a batch with one known ID",
			"Only unconditional statements are permitted",
			"kdedup: self-test: store.cassandra: a batch with one known ID: expected \"the known " +
				"ID refused, the others applied\", got ",
			"set store.cassandra.batch_claims to 1",
		}, "clean-up"},
		{"with the remedy", []string{"-c", configured(", batch_claims: 1")}, 0,
			[]string{"  ok  clean-up"}, "FAILED"},
		{"without the self-test", []string{"-c", configured(""), "--skip-self-test"},
			0, []string{"table kdedup.processed_messages exists"}, "self-test"},
		{"only looking", []string{"-c", configured(""), "--dry-run"},
			0, []string{"table kdedup.processed_messages exists"}, "self-test"},
	} {
		t.Run(c.name, func(t *testing.T) {
			code, text := kdedup(t.Context(), append([]string{"setup"}, c.args...)...)
			for _, want := range c.want {
				if !strings.Contains(text, want) {
					t.Errorf("%q is missing", want)
				}
			}
			if code != c.code || strings.Contains(text, c.not) || t.Failed() {
				t.Errorf("exit code %d, want %d and no %q:\n%s", code, c.code, c.not, text)
			}
			if rows := server.Rows(); rows > 0 {
				t.Errorf("%d rows are left", rows)
			}
		})
	}
}

// The job that sets up a release has not got the volume of the store.
func TestASetupElsewhereSkipsTheSelfTestOfAnEmbeddedStore(t *testing.T) {
	_, brokers := testkit.FakeKafka(t, kfake.SeedTopics(1, "orders"))
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	path := writeWithStore(t, brokers,
		fmt.Sprintf("{type: embedded, embedded: {path: %q}}", filepath.Join(file, "data")))
	if code, text := kdedup(t.Context(), "setup", "-c", path); code != 0 ||
		!strings.Contains(text,
			"self-test skipped, for the directory of the store cannot be made from here: ") {
		t.Errorf("exit code %d:\n%s", code, text)
	}
}
