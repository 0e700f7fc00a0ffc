package e2e_test

import (
	"strings"
	"testing"

	"github.com/kdedup/kdedup/internal/testkit"
)

// withKeepers has the processes of a place share out the shards of its claim log.
func withKeepers(at place, copies string) place {
	at.store = strings.TrimSuffix(at.store, "}") + ", keepers: {keep: shared, copies: " + copies +
		", listen: '127.0.0.1:0', secret: 0123456789abcdef0123456789abcdef}}"
	return at
}

// Two processes share out the shards; one is killed in mid-run, loses its part of the index, and
// comes back.
func TestAKeeperThatIsKilledLosesNothing(t *testing.T) {
	testkit.InTurn(t)
	t.Parallel()
	for _, copies := range []string{"1", "2"} {
		t.Run(copies+" copies", func(t *testing.T) {
			deliveries(t, func(t *testing.T, delivery string) {
				killedOnALog(t, withKeepers(onClaimLog(t, "files"), copies), delivery)
			})
		})
	}
}

func TestAKeeperOfACassandraLogThatIsKilledLosesNothing(t *testing.T) {
	testkit.InTurn(t)
	t.Parallel()
	deliveries(t, func(t *testing.T, delivery string) {
		killedOnALog(t, withKeepers(onCassandraLog(t, "files"), "1"), delivery)
	})
}
