package e2e_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/kdedup/kdedup/internal/testkit/servers"
)

// limits of a broker around which the settings of a trial are drawn. Zero is the broker's default,
// which admits all that is drawn.
type limits struct {
	sessionLeast, sessionMost, transaction time.Duration
	members                                int
}

// oddBroker starts a broker as platforms set theirs up: with limits on what clients ask for, and
// short memories.
func oddBroker(t *testing.T, random *rand.Rand) ([]string, limits) {
	t.Helper()
	servers.Need(t)
	var l limits
	settings := map[string]string{}
	seconds := func(key string, from, span int) time.Duration {
		d := time.Duration(from+random.IntN(span)) * time.Second
		settings[key] = fmt.Sprint(d.Milliseconds())
		return d
	}
	if random.IntN(2) == 0 {
		l.sessionLeast = seconds("group.min.session.timeout.ms", 6, 3)
		l.sessionMost = seconds("group.max.session.timeout.ms", 9, 6)
	}
	if random.IntN(2) == 0 {
		l.transaction = seconds("transaction.max.timeout.ms", 10, 20)
	}
	if random.IntN(2) == 0 {
		l.members = 1 + random.IntN(2)
		settings["group.max.size"] = fmt.Sprint(l.members)
		settings["group.consumer.max.size"] = fmt.Sprint(l.members)
	}
	for key, values := range map[string][]string{
		"connections.max.idle.ms":                   {"3000"},
		"max.incremental.fetch.session.cache.slots": {"0", "1"},
		"socket.request.max.bytes":                  {"8388608"},
		"offset.metadata.max.bytes":                 {"512"},
		"transactional.id.expiration.ms":            {"15000"},
		"producer.id.expiration.ms":                 {"10000"},
		"num.io.threads":                            {"1"},
	} {
		if random.IntN(3) == 0 {
			settings[key] = values[random.IntN(len(values))]
		}
	}
	settings["transaction.remove.expired.transaction.cleanup.interval.ms"] = "2000"
	settings["producer.id.expiration.check.interval.ms"] = "2000"
	t.Logf("the broker: %v", settings)
	broker, err := servers.StartKafka(t.Context(), servers.KafkaOptions{Dir: t.TempDir(),
		Heap: "512m", Config: settings})
	return []string{servers.ForTest(t, broker, err).Addr()}, l
}

// demands are the settings of a trial that a broker limits.
type demands struct {
	session, transaction time.Duration
	lanes                int
	protocol             string
}

func (o *trial) draw() demands {
	return demands{session: time.Duration(6+o.random.IntN(12)) * time.Second,
		transaction: time.Duration(8+o.random.IntN(25)) * time.Second,
		lanes:       1 + o.random.IntN(2), protocol: one(o.random, "classic", "consumer")}
}

func (d demands) String() string {
	return fmt.Sprintf("session_timeout: %s, transaction_timeout: %s, lanes: %d, group_protocol: %s",
		d.session, d.transaction, d.lanes, d.protocol)
}

// refused are the beginnings of what every command must say of demands.
func (o *trial) refused(d demands) (said []string) {
	refuse := func(broken bool, text string, limit any) {
		if broken {
			said = append(said, fmt.Sprintf(".%s %v (", text, limit))
		}
	}
	l, classic := o.limits, d.protocol == "classic"
	refuse(classic && d.session < l.sessionLeast, "session_timeout: must be at least",
		l.sessionLeast)
	refuse(classic && l.sessionMost > 0 && d.session > l.sessionMost,
		"session_timeout: must be at most", l.sessionMost)
	refuse(o.delivery == exactlyOnce && l.transaction > 0 && d.transaction > l.transaction,
		"transaction_timeout: must be at most", l.transaction)
	refuse(l.members > 0 && d.lanes > l.members, "lanes: must be at most", l.members)
	return said
}

// admitted draws until the broker admits it, and looks at how kdedup refuses the others. A process
// with a pattern goes on, and says which topics wait for what.
func (o *trial) admitted(pattern bool, configure func(demands)) demands {
	o.t.Helper()
	commands := [][]string{{"setup", "--skip-self-test", "--dry-run"}}
	if !pattern {
		commands = append(commands, []string{"run"})
	}
	for {
		d := o.draw()
		configure(d)
		want := o.refused(d)
		if len(want) == 0 {
			return d
		}
		for _, command := range commands {
			said, code := o.try(command...)
			for _, line := range want {
				if code != 1 || !strings.Contains(said, line) {
					o.t.Errorf("kdedup %v with %v: exit code %d, without %q:\n%s", command, d, code,
						line, said)
				}
			}
		}
	}
}
