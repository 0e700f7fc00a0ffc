package e2e_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kdedup/kdedup/internal/testkit"
	"github.com/kdedup/kdedup/internal/testkit/servers"
)

// A broker with limits of its own, and settings around them at random: what it never admits every
// command refuses, with the place, the value and the limit, also where the limit is not told. What
// it admits runs.
func TestSettingsBeyondTheBrokersLimitsAreRefusedByEveryCommand(t *testing.T) {
	t.Parallel()
	servers.Need(t)
	broker, err := servers.StartKafka(t.Context(), servers.KafkaOptions{Dir: t.TempDir(),
		Heap: "384m", Config: map[string]string{
			"transaction.max.timeout.ms":   "10000",
			"group.min.session.timeout.ms": "20000",
			"group.max.session.timeout.ms": "25000",
			"group.max.size":               "2",
		}})
	brokers := []string{servers.ForTest(t, broker, err).Addr()}
	blind := testkit.HidingProxies(t, brokers, kmsg.DescribeConfigs)
	r := rand.New(rand.NewPCG(43, 7))
	for i := range 6 {
		session, transaction, lanes := 18+r.IntN(10), 8+r.IntN(5), 1+r.IntN(3)
		if i == 0 {
			session, transaction, lanes = 20, 10, 2 // all as they may be
		}
		at := place{brokers: brokers, store: embeddedStore(t)}
		var want []string
		if session < 20 {
			want = append(want, fmt.Sprintf("topics[0].session_timeout: must be at least 20s "+
				"(group.min.session.timeout.ms of broker 1), got %ds", session))
		}
		if session > 25 {
			want = append(want, fmt.Sprintf("topics[0].session_timeout: must be at most 25s "+
				"(group.max.session.timeout.ms of broker 1), got %ds", session))
		}
		if transaction > 10 {
			want = append(want, fmt.Sprintf("topics[0].transaction_timeout: must be at most 10s "+
				"(transaction.max.timeout.ms of broker 1), got %ds", transaction))
		}
		if lanes > 2 {
			want = append(want, fmt.Sprintf("topics[0].lanes: must be at most 2 (group.max.size of "+
				"broker 1), got %d", lanes))
		}
		if i%2 == 1 { // the limits are not told, and their names are
			at.kafka = fmt.Sprintf("{brokers: %q}", blind[0])
			for j, line := range want {
				setting, _, _ := strings.Cut(line, ":")
				want[j] = setting + ": broker 1 refuses "
			}
			if lanes > 2 {
				want, lanes = want[:len(want)-1], 2 // a group that is full is told by its lanes
			}
		}
		d := prepare(t, at, exactlyOnce, fmt.Sprintf("session_timeout: %ds", session),
			fmt.Sprintf("transaction_timeout: %ds", transaction), fmt.Sprintf("lanes: %d", lanes))
		if len(want) == 0 {
			d.command("setup", "--skip-self-test")
			d.command("validate")
			d.produce(100, 10)
			one := d.start("one")
			one.waitReady()
			d.waitFor(1)
			one.stop()
			continue
		}
		for _, command := range [][]string{{"setup", "--skip-self-test"},
			{"setup", "--skip-self-test", "--dry-run"}, {"validate"}, {"run"}} {
			said, code := d.try(command...)
			for _, line := range want {
				if code != 1 || !strings.Contains(said, line) {
					t.Errorf("kdedup %v: exit code %d, without %q:\n%s", command, code, line, said)
				}
			}
		}
	}
}
