package process

import (
	"slices"
	"sync"

	"github.com/kdedup/kdedup/config"
	"github.com/kdedup/kdedup/internal/telemetry"
)

// manyTopics of one pattern share series, if the configuration leaves that open.
const manyTopics = 20

// namedTopics stands in the place of topics that the file names, where they share series.
const namedTopics = "named topics"

// sharing remembers which patterns had many topics: those that become fewer again go on to share
// series, which else would change their names back and forth.
type sharing struct {
	mu   sync.Mutex
	many map[string]bool // by pattern
}

// groups are the topics and clients whose series are added up now.
func (p *Process) groups() telemetry.Groups {
	now := p.active.Load()
	return p.sharing.groups(now.file, now.config.Topics)
}

func (s *sharing) groups(file config.Config, topics []config.Topic) telemetry.Groups {
	g := telemetry.Groups{Topics: make(map[string]string),
		Clients: make(map[string]telemetry.Client)}
	if file.Metrics.PerTopic == config.PerTopicAll {
		return g
	}
	of := make(map[string]config.Topic) // the pattern's entry, by input
	count := make(map[string]int)
	for _, t := range topics {
		if entry, found := file.PatternOf(t); found {
			of[t.Input] = entry
			count[entry.Input]++
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.many == nil {
		s.many = make(map[string]bool)
	}
	for pattern, n := range count {
		s.many[pattern] = s.many[pattern] || n > manyTopics
	}
	for _, t := range topics {
		entry, matched := of[t.Input]
		switch {
		case matched && (s.many[entry.Input] || file.Metrics.PerTopic == config.PerTopicSummed):
			share(&g, t, entry.Input, entry.ConsumerGroup+"-"+file.Instance, file.Instance,
				calledBy(t, entry))
		case !matched && file.Metrics.PerTopic == config.PerTopicSummed:
			share(&g, t, namedTopics, namedTopics, file.Instance, nil)
		}
	}
	return g
}

// share has an entry's topic and its lanes' clients belong to a group.
func share(
	g *telemetry.Groups, t config.Topic, name, client, instance string, topics map[string]string,
) {
	g.Topics[t.Input] = name
	for lane := range t.Lanes {
		member := memberOf(t, instance, lane)
		for _, which := range []string{"", ofOutput, ofInput} {
			g.Clients[member+which] = telemetry.Client{Name: client + which, Topics: topics}
		}
	}
}

// calledBy are the topics of an entry, and what the pattern calls them.
func calledBy(t, pattern config.Topic) map[string]string {
	return map[string]string{t.Input: pattern.Input, t.Output: pattern.Output,
		t.FenceTopic: pattern.FenceTopic, t.DuplicatesTopic: pattern.DuplicatesTopic,
		t.DeadLetterTopic: pattern.DeadLetterTopic}
}

// addedUp are the families of counters that topics share. Alerts that divide one by another divide
// sums by sums.
func addedUp(family string) bool {
	return slices.Contains([]string{
		"kdedup_lane_failures_total", "kdedup_undeliverable_total",
		"kdedup_duplicates_near_ttl_total", "kdedup_claims_total", "kdedup_claims_ambiguous_total",
		"kdedup_claim_retries_total", "kdedup_batches_total", "kdedup_forwards_late_total",
		"kdedup_rebalances_total", "kdedup_rewinds_total",
	}, family)
}
