package command

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/kdedup/kdedup/internal/testkit"
)

// What store.keepers says of addresses is for processes that run; one may run here.
func TestBenchMeasuresProcessesThatShareAClaimLog(t *testing.T) {
	for keep, want := range map[string]string{
		"shared": `claims +2000 +2 processes of 2 lanes`,
		"none":   `claims +2000 +1 keeper, 2 processes of 2 lanes`,
	} {
		t.Run(keep, func(t *testing.T) {
			_, brokers := testkit.FakeKafka(t, kfake.SeedTopics(2, "orders"))
			p := onTheLog(t, brokers, "}, keepers: {keep: "+keep+", listen: '127.0.0.1:9', "+
				"secret: 0123456789abcdef0123456789abcdef", "")
			before := topicNames(t, brokers)
			for command, want := range map[string]string{
				"claims --ids 2000 --duplicates 0":       want,
				"pipeline --records 1000 --partitions 2": `lost +0`,
			} {
				code, text := kdedup(t.Context(), append(strings.Fields("bench "+command),
					"--processes", "2", "-c", p.path)...)
				if code != 0 || !regexp.MustCompile(want).MatchString(text) {
					t.Errorf("%s: exit code %d, want 0 with %q:\n%s", command, code, want, text)
				}
			}
			left, err := os.ReadDir(strings.TrimSuffix(indexOf(t, p), "index"))
			if err != nil || len(left) > 0 {
				t.Errorf("left behind: %v, %v", left, err)
			}
			if got := topicNames(t, brokers); !slices.Equal(got, before) {
				t.Errorf("topics %v were there, and now there are %v", before, got)
			}
		})
	}
}

// indexOf is the directory that the configuration names.
func indexOf(t *testing.T, p *place) string {
	t.Helper()
	text, err := os.ReadFile(p.path)
	if err != nil {
		t.Fatal(err)
	}
	_, path, _ := strings.Cut(string(text), "{path: ")
	path, _, _ = strings.Cut(path, "}")
	return path
}

func TestBenchRefusesNumbersOfProcessesThatCannotBe(t *testing.T) {
	_, brokers := testkit.FakeKafka(t, kfake.SeedTopics(1, "orders"))
	p := onTheLog(t, brokers, "", "")
	p.must(2, "--processes must be at least 1", "bench claims --processes 0")
	p.inStore("{type: embedded, embedded: {path: " + t.TempDir() + "}}")
	p.must(2, "--processes must be 1 with store.type embedded", "bench pipeline --processes 2")
}
