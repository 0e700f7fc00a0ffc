package process

import (
	"maps"
	"slices"

	"github.com/kdedup/kdedup/config"
	"github.com/kdedup/kdedup/internal/telemetry"
)

// Series is about how many a process shows that has all lanes and partitions.
type Series struct {
	All    int
	Shared []string // the patterns whose topics share some, see the setting metrics.per_topic
}

// What stands behind the sum, see docs/metrics.md. TestTheNumberOfSeriesIsToldBeforehand compares
// it with what a process shows.
const (
	ofProcess   = 130 // those of Go, of the store and of the process itself
	ofTopic     = 25
	ofLane      = 5
	ofPartition = 4
	shareable   = 146 // of a topic, or of all that share them
	ofClient    = 20  // of a lane's client to a cluster, or of all that share them
	ofBroker    = 27  // more, for each broker
)

// CountSeries counts those of the entries that the file's patterns have been expanded to. It is
// told how many brokers each of the clusters has.
func CountSeries(file config.Config, topics []config.Topic, partitions map[string]int,
	brokers ...int,
) Series {
	groups := new(sharing).groups(file, topics)
	shared := make(map[string]bool)
	s := Series{All: ofProcess}
	for _, t := range topics {
		name, shares := groups.Topics[t.Input]
		lanes, parts := t.Lanes, partitions[t.Input]
		if shares {
			lanes, parts = telemetry.Own("lane", lanes), telemetry.Own("partition", parts)
		}
		if !file.Metrics.PerPartition {
			parts = 1
		}
		s.All += ofTopic + lanes*ofLane + parts*ofPartition
		if !shares || !shared[name] {
			clients := t.Lanes
			if shares {
				clients = 1
			}
			s.All += shareable
			for _, n := range brokers {
				s.All += clients * (ofClient + n*ofBroker)
			}
		}
		if shares {
			shared[name] = true
		}
	}
	s.Shared = slices.Sorted(maps.Keys(shared))
	return s
}
