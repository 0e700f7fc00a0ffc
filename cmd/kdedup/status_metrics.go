package main

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/kdedup/kdedup/config"
	"github.com/kdedup/kdedup/pipeline"
	"github.com/kdedup/kdedup/server"
)

// addDurations adds a topic's histogram to what other topics had.
func (m metrics) addDurations(sum *server.Durations, name, topic string) {
	for _, metric := range m.with(name, "topic", topic) {
		h := metric.GetHistogram()
		sum.Count, sum.Sum = sum.Count+h.GetSampleCount(), sum.Sum+h.GetSampleSum()
		for i, bucket := range h.GetBucket() {
			if i == len(sum.Bounds) {
				sum.Bounds, sum.Counts = append(sum.Bounds, bucket.GetUpperBound()), append(sum.Counts, 0)
			}
			sum.Counts[i] += bucket.GetCumulativeCount()
		}
	}
}

func partitionsNow(l pipeline.LaneState) []server.Partition {
	var all []server.Partition
	for _, a := range l.Assigned {
		p := server.Partition{Partition: a.Partition, Lane: l.Lane, DoneTo: a.Fence, Lag: a.Lag}
		if a.Held != nil {
			p.Held = cut(a.Held.String())
		}
		all = append(all, p)
	}
	return all
}

func sortPartitions(all []server.Partition) {
	slices.SortFunc(all, func(a, b server.Partition) int { return cmp.Compare(a.Partition, b.Partition) })
}

// storeNow adds up over the topics.
func storeNow(c config.Config, m metrics) server.Store {
	var (
		now     = server.Store{Type: c.Store.Type, Blocked: []string{}}
		again   float64
		results = []string{"applied", "exists", "unclaimed"}
		totals  = make([]float64, len(results))
	)
	for _, t := range c.Topics {
		for i, result := range results {
			totals[i] += m.value("kdedup_claims_total", "result", result, "topic", t.Input)
		}
		again += m.value("kdedup_claims_ambiguous_total", "topic", t.Input)
		m.addDurations(&now.Batches, "kdedup_claim_duration_seconds", t.Input)
		for lane := range t.Lanes {
			if m.value("kdedup_store_blocked", "lane", strconv.Itoa(lane), "topic", t.Input) > 0 {
				now.Blocked = append(now.Blocked, t.Input+" lane "+strconv.Itoa(lane))
			}
		}
	}
	for i, result := range results {
		now.Claims = append(now.Claims, server.Count{Name: result, Total: totals[i]})
	}
	now.Facts = append(storeFacts(now.Type, m), server.Fact{Name: "claims_repeated", Value: again, Unit: "count"})
	return now
}

// storeFacts are the numbers that only one type of store has.
func storeFacts(kind string, m metrics) []server.Fact {
	if kind == config.StoreEmbedded {
		return []server.Fact{{Name: "disk_used", Value: m.value("kdedup_embedded_disk_bytes"), Unit: "bytes"}}
	}
	if kind == config.StoreRedis {
		return []server.Fact{{Name: "requests_failed", Value: m.value("kdedup_redis_failures_total"), Unit: "count"}}
	}
	if kind == config.StorePostgres {
		return []server.Fact{
			{Name: "connections_in_use", Value: m.value("kdedup_postgres_connections_in_use"), Unit: "count"},
			{Name: "connections_at_most", Value: m.value("kdedup_postgres_connections_limit"), Unit: "count"},
			{Name: "statements_sent_again", Value: m.value("kdedup_postgres_retries_total"), Unit: "count"},
		}
	}
	return []server.Fact{
		{Name: "requests_in_flight", Value: m.value("kdedup_cassandra_requests_in_flight"), Unit: "count"},
		{Name: "requests_in_flight_at_most", Value: m.value("kdedup_cassandra_requests_limit"), Unit: "count"},
		{Name: "requests_overloaded", Value: m.value("kdedup_cassandra_overloads_total"), Unit: "count"},
	}
}
