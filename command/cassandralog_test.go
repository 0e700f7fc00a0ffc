package command

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/kdedup/kdedup/internal/testkit"
)

// inLayout is newPlace with the claims in Cassandra.
func inLayout(t *testing.T, brokers []string, keyspace, layout string) *place {
	t.Helper()
	p := newPlace(t, brokers, "orders", "unused", "    ttl: 24h\n    buckets: 2\n")
	p.inStore(fmt.Sprintf("{type: cassandra, cassandra: {hosts: [%q], keyspace: %s, timeout: 20s, "+
		"layout: %s, log: {shards: 2, path: %s}}}", testkit.Cassandra(t), keyspace, layout,
		filepath.Join(t.TempDir(), "index")))
	return p
}

func TestSetupMakesAClaimLogInCassandra(t *testing.T) {
	keyspace := testkit.Keyspace(t)
	testkit.Cassandra(t)
	_, brokers := testkit.FakeKafka(t, kfake.SeedTopics(1, "orders"))
	p := inLayout(t, brokers, keyspace, "log")
	p.must(1, "keyspace "+keyspace+" does not exist; create it with: kdedup setup -c ",
		"validate")
	p.must(0, "would make the claim log of orders-dedup with 2 shards, if it is missing",
		"setup --dry-run")
	p.must(0, "made the claim log of orders-dedup with 2 shards", "setup")
	p.must(0, "claim log of orders-dedup exists", "setup --skip-self-test")
	p.must(0, "", "validate")
	p.produce("orders", "a", "b", "a")
	p.runUntil(3)
	again := inLayout(t, brokers, keyspace, "log") // without the index of before
	again.produce("orders", "b", "c")
	again.runUntil(5)
	if got := strings.Join(again.clean(), ""); got != "abc" {
		t.Errorf("clean topic: %s", got)
	}
	again.must(0, "claim", "bench claims --ids 2000")
}

// The claims of one layout are unknown to the other: copies would pass without a word.
func TestAnotherLayoutIsRefusedUntilItIsAccepted(t *testing.T) {
	for from, to := range map[string]string{"rows": "log", "log": "rows"} {
		t.Run(from+" to "+to, func(t *testing.T) {
			keyspace := testkit.Keyspace(t)
			testkit.Cassandra(t)
			_, brokers := testkit.FakeKafka(t, kfake.SeedTopics(1, "orders"))
			before := inLayout(t, brokers, keyspace, from)
			before.must(0, "", "setup --skip-self-test")
			before.produce("orders", "a", "b")
			before.runUntil(2)
			after := inLayout(t, brokers, keyspace, to)
			after.must(0, "", "setup --skip-self-test")
			refused := "scope orders-dedup/orders has claims with store.cassandra.layout " + from +
				", which those of layout " + to + " do not know. Set layout to " + from
			after.must(1, refused, "validate")
			after.must(1, refused, "run")
			before.must(0, "", "validate") // nothing was registered
			after.must(0, "would accept store.cassandra.",
				"setup --skip-self-test --accept-empty-store --dry-run")
			after.must(1, refused, "validate")
			after.must(0, "accepted store.cassandra.",
				"setup --skip-self-test --accept-empty-store")
			after.must(0, "", "validate")
			after.produce("orders", "c", "c")
			after.runUntil(4)
			if got := strings.Join(after.clean(), ""); got != "abc" {
				t.Errorf("clean topic: %s", got)
			}
			before.must(1, "layout "+to+", which those of layout "+from+" do not know", "validate")
		})
	}
}

func TestClaimsMoveFromRowsToALogAndBack(t *testing.T) {
	keyspace := testkit.Keyspace(t)
	testkit.Cassandra(t)
	_, brokers := testkit.FakeKafka(t, kfake.SeedTopics(1, "orders"))
	rows := inLayout(t, brokers, keyspace, "rows")
	rows.must(0, "", "setup --skip-self-test")
	rows.produce("orders", "a", "b")
	rows.runUntil(2)
	log := inLayout(t, brokers, keyspace, "log")
	log.must(0, "", "setup --skip-self-test")
	log.must(0, "2 claims copied, 0 were there, 0 had ended, 0 differ",
		"migrate --yes --from "+rows.path)
	log.must(0, "", "validate")
	rows.must(1, "kdedup migrate has moved scope orders-dedup/orders", "validate")
	log.produce("orders", "b", "c")
	log.runUntil(4)
	rows.must(0, "1 claims copied, 2 were there, 0 had ended, 0 differ",
		"migrate --yes --from "+log.path)
	rows.must(0, "", "validate")
	rows.produce("orders", "a", "c", "d")
	rows.runUntil(7)
	if got := strings.Join(rows.clean(), ""); got != "abcd" {
		t.Errorf("clean topic: %s", got)
	}
}
