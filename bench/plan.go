package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kdedup/kdedup/lab/workload"
)

// variant is one load that contestants run under.
type variant struct {
	label     string
	spec      workload.Spec
	processes int
}

// mode is a question that the benchmark answers, and where the answer stands in the document.
type mode struct {
	name    string
	title   string
	only    string // the contestants unless flags name others; empty for all
	tail    bool   // the table shows the memory during the run
	latency bool
	torture bool // processes are killed

	bases []string // the table shows by how much each of these is faster
	vary  func(base workload.Spec) []variant
}

var (
	// compared are the kdedups that everything is compared with, among many contestants.
	compared = []string{kdedupCassandra, kdedupRedis, kdedupEmbedded}

	onTwoClusters = strings.Join([]string{kdedupEmbedded, embeddedApart, kdedupKafka, kafkaApart},
		",")
)

// modes are all; the first is the default.
var modes = []mode{
	{name: "compare", title: "Throughput, against others", vary: asItIs, bases: compared},
	{name: "peers", title: "Throughput, against other systems", vary: asItIs, bases: compared,
		only: "flink-hashmap,flink-rocksdb,camel,streams,bento,bento-ordered," + kdedupCassandra +
			"," + kdedupRedis + "," + kdedupKafka + "," + kdedupEmbedded},
	{name: "latency", title: "Latency, and an idle process", latency: true, vary: asItIs,
		only: "kdedup-cassandra,kdedup-cassandra-alo,kdedup-kafka,kdedup-embedded," +
			"kdedup-embedded-alo"},
	{name: "apart", title: "Onto another cluster", only: onTwoClusters, vary: asItIs,
		bases: []string{kdedupEmbedded, kdedupKafka}},
	{name: "apart-latency", title: "Latency onto another cluster", latency: true, vary: asItIs,
		only: onTwoClusters},
	{name: "torture", title: "Killed processes", torture: true,
		only: "flink-hashmap,flink-rocksdb,camel,streams,bento-ordered,lwt,redis-ordered," +
			kdedupCassandra + "," + kdedupRedis + "," + kdedupKafka,
		vary: func(base workload.Spec) []variant {
			base.Records = min(base.Records, 200_000)
			return []variant{{spec: base, processes: 2}}
		}},
	{name: "backlog", title: "Memory over a long backlog", only: kdedupCassandra + "," +
		kdedupEmbedded, tail: true,
		vary: func(base workload.Spec) []variant {
			base.Records *= 10
			return asItIs(base)
		}},
	{name: "processes", title: "More processes", only: kdedupCassandra + "," + kdedupKafka +
		"," + kdedupKeepers,
		vary: func(base workload.Spec) []variant {
			return append([]variant{{"1 process", base, 1}},
				vary([]int{2, 4, 8}, func(n int) variant {
					return variant{fmt.Sprintf("%d processes", n), base, n}
				})...)
		}},
	{name: "partitions", title: "More partitions", only: kdedupCassandra + "," + kdedupKafka,
		vary: func(base workload.Spec) []variant {
			return vary([]int{8, 64, 512}, func(n int) variant {
				base.Partitions = n
				return variant{fmt.Sprintf("%d partitions", n), base, 1}
			})
		}},
	{name: "duplicates", title: "More duplicates", only: kdedupCassandra + "," + kdedupEmbedded,
		vary: func(base workload.Spec) []variant {
			return vary([]int{0, 1, 10, 50, 99}, func(percent int) variant {
				base.Duplicates = float64(percent) / 100
				return variant{fmt.Sprintf("%d %% duplicates", percent), base, 1}
			})
		}},
	{name: "hot", title: "One ID again and again", only: kdedupCassandra + "," + kdedupEmbedded,
		vary: func(base workload.Spec) []variant {
			return vary([]int{0, base.Records / 10}, func(hot int) variant {
				base.Hot = hot
				return variant{fmt.Sprintf("%s copies of one ID", thousands(float64(hot))), base, 1}
			})
		}},
	{name: "ids", title: "Longer IDs, and IDs in the order of time", only: kdedupCassandra,
		vary: func(base workload.Spec) []variant {
			return append(vary([]int{16, 36, 64, 128, 256}, func(n int) variant {
				base.IDBytes = n
				return variant{fmt.Sprintf("%d bytes", n), base, 1}
			}), ordered(base))
		}},
}

func asItIs(base workload.Spec) []variant { return []variant{{spec: base, processes: 1}} }

func vary(values []int, make func(int) variant) []variant {
	var all []variant
	for _, v := range values {
		all = append(all, make(v))
	}
	return all
}

func ordered(base workload.Spec) variant {
	base.IDBytes, base.Ordered = workload.UUIDBytes, true
	return variant{"36 bytes, UUIDv7", base, 1}
}

func modeNamed(name string) (mode, error) {
	at := slices.IndexFunc(modes, func(m mode) bool { return m.name == name })
	if at < 0 {
		return mode{}, fmt.Errorf("there is no %q; there are %s", name,
			strings.Join(modeNames(), ", "))
	}
	return modes[at], nil
}

func modeNames() []string {
	var names []string
	for _, m := range modes {
		names = append(names, m.name)
	}
	return names
}
