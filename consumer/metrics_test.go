package consumer

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

const lagHead = `
# HELP kdedup_consumer_lag Records between the committed offset and the last stable offset of an assigned partition; with metrics.per_partition: false the sum of a topic's.
# TYPE kdedup_consumer_lag gauge
`

func TestLagIsThatOfThePartitionsAtHand(t *testing.T) {
	for _, c := range []struct {
		name       string
		collectors func(*Collectors) *Collectors
		all, one   string
	}{
		{
			"per partition", func(c *Collectors) *Collectors { return c },
			"kdedup_consumer_lag{partition=\"0\",topic=\"orders\"} " +
				"5\nkdedup_consumer_lag{partition=\"7\",topic=\"orders\"} 11\n",
			"kdedup_consumer_lag{partition=\"7\",topic=\"orders\"} 11\n",
		},
		{
			"per topic", (*Collectors).PerTopic,
			"kdedup_consumer_lag{partition=\"\",topic=\"orders\"} 16\n",
			"kdedup_consumer_lag{partition=\"\",topic=\"orders\"} 11\n",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			reg := prometheus.NewRegistry()
			m := c.collectors(NewCollectors(reg)).For("orders")
			check := func(want string) {
				t.Helper()
				if want != "" {
					want = lagHead + want
				}
				if err := testutil.GatherAndCompare(
					reg, strings.NewReader(want), "kdedup_consumer_lag",
				); err != nil {
					t.Error(err)
				}
			}
			m.lag.set(0, 4)
			m.lag.set(0, 5)
			m.lag.set(7, 11)
			check(c.all)
			m.forgetPartition(0)
			check(c.one)
			m.forgetPartition(7)
			check("")
		})
	}
}
