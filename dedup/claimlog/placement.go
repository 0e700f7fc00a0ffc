package claimlog

import (
	"cmp"
	"encoding/binary"
	"slices"

	"github.com/cespare/xxhash/v2"
)

// Member is a process that shares the shards of a group with others.
type Member struct {
	Process  uint64 // no two have the same, nor one after a restart
	Instance string // the same after a restart, which has the files of the index
	Address  string // where it answers
	Keeps    bool   // or it only asks
}

// place says which members keep which shards, best first: copies of each, or as many as there are.
// Every process comes to the same. No member keeps more than its part, rounded up. A shard goes to
// the members that rank highest for it and have room, so one that comes or goes moves few.
func place(members []Member, shards, copies int) [][]Member {
	keeping := slices.DeleteFunc(slices.Clone(members), func(m Member) bool { return !m.Keeps })
	plan := make([][]Member, shards)
	if len(keeping) == 0 {
		return plan
	}
	copies = min(copies, len(keeping))
	room := (shards*copies + len(keeping) - 1) / len(keeping)
	has := make(map[uint64]int)
	for range copies {
		for shard := range plan {
			ranked := rank(keeping, shard)
			at := slices.IndexFunc(ranked, func(m Member) bool {
				return has[m.Process] < room && !keeps(plan[shard], m.Process)
			})
			if at < 0 { // who has room keeps this shard already
				at = slices.IndexFunc(ranked, func(m Member) bool {
					return !keeps(plan[shard], m.Process)
				})
			}
			plan[shard] = append(plan[shard], ranked[at])
			has[ranked[at].Process]++
		}
	}
	return plan
}

func keeps(members []Member, process uint64) bool {
	return slices.ContainsFunc(members, func(m Member) bool { return m.Process == process })
}

// rank orders members by a hash of shard and instance (rendezvous hashing).
func rank(members []Member, shard int) []Member {
	weight := func(m Member) uint64 {
		return xxhash.Sum64(binary.BigEndian.AppendUint32([]byte(m.Instance), uint32(shard)))
	}
	return slices.SortedFunc(slices.Values(members), func(a, b Member) int {
		return cmp.Or(cmp.Compare(weight(b), weight(a)), cmp.Compare(a.Process, b.Process))
	})
}
