package command

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/kdedup/kdedup/internal/testkit"
)

// Another program wrote the clean topic so far. Its records have no claims until a backfill.
func TestACleanTopicThatHoldsRecordsOfAnotherProgramIsTold(t *testing.T) {
	const told = "topic orders.clean holds 2 offsets already, and nothing is claimed in this scope"
	_, brokers := testkit.FakeKafka(t, kfake.SeedTopics(2, "orders"),
		kfake.SeedTopics(3, "orders.clean"))
	p := newPlace(t, brokers, "orders", filepath.Join(t.TempDir(), "data"), "")
	if _, text := kdedup(t.Context(), "validate", "-c", p.path); strings.Contains(text, told) {
		t.Errorf("of an empty topic:\n%s", text)
	}
	p.produce("orders.clean", "a", "b")
	for _, command := range []string{"setup --skip-self-test", "validate"} {
		p.must(0, told, command)
		p.must(0, "the last 1 get none from this entry", command)
	}
	p.must(0, "", "backfill --topic orders")
	for _, command := range []string{"setup --skip-self-test", "validate"} {
		if _, text := kdedup(t.Context(), append(strings.Fields(command), "-c",
			p.path)...); strings.Contains(text, told) {
			t.Errorf("kdedup %s after the backfill:\n%s", command, text)
		}
	}
}
