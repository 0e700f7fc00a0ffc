package chaos_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// verdict is what the topics hold after all.
type verdict struct {
	records, ids int // of the input
	duplicates   int // on the duplicates topic
	lost         []string
	doubled      []string // IDs of which two copies were forwarded
	repeated     []string // IDs of which one copy was forwarded more than once
	unaccounted  []place  // input records that are on neither of the topics
	twice        []place  // input records that are on them more than once
	// clean records that are not byte for byte an input record of their partition
	changed    []*seen
	disordered []*seen // clean records that came after one that followed them on the input
}

// broken reports whether this is less than the delivery promises. A copy of a forwarded message is
// never forwarded, also with at_least_once.
func (v verdict) broken(delivery string) bool {
	broken := len(v.lost) > 0 || len(v.doubled) > 0 || len(v.unaccounted) > 0 ||
		len(v.changed) > 0 || len(v.disordered) > 0
	if delivery == exactlyOnce {
		broken = broken || len(v.repeated) > 0 || len(v.twice) > 0
	}
	return broken
}

func (v verdict) String() string {
	return fmt.Sprintf(
		"%d records with %d ids, %d dropped as duplicates: %d lost, %d doubled, %d repeated; "+
			"%d changed, %d out of order; %d input records without a trace, %d with several",
		v.records, v.ids, v.duplicates, len(v.lost), len(v.doubled), len(v.repeated),
		len(v.changed), len(v.disordered), len(v.unaccounted), len(v.twice))
}

// check reads all topics as a read_committed consumer does and compares them.
func (s *storm) check() verdict {
	s.t.Helper()
	in, clean, dropped := s.read(s.input), s.read(s.output()), s.read(s.duplicates())
	v := compare(in, clean, dropped)
	s.explain(v, in, clean, dropped)
	return v
}

func compare(in, clean, dropped *contents) verdict {
	v := verdict{records: len(in.all), ids: len(in.byID), duplicates: len(dropped.all)}
	origins := v.trace(in, clean)
	for id := range in.byID {
		switch forwarded := clean.byID[id]; {
		case len(forwarded) == 0:
			v.lost = append(v.lost, id)
		case len(forwarded) > 1 && sameDigest(forwarded):
			v.repeated = append(v.repeated, id)
		case len(forwarded) > 1:
			v.doubled = append(v.doubled, id)
		}
	}
	for _, ids := range [][]string{v.lost, v.doubled, v.repeated} {
		slices.Sort(ids)
	}
	v.account(in, origins, dropped)
	return v
}

func sameDigest(records []*seen) bool {
	return !slices.ContainsFunc(records, func(r *seen) bool {
		return r.digest != records[0].digest
	})
}

// trace finds the input record of every clean record. Each must be byte for byte one of the same
// partition, and they must come in its order; what came before may come again.
func (v *verdict) trace(in, clean *contents) map[place]int {
	origins := make(map[place]int, len(clean.all))
	last := make(map[int32]int64)
	for _, r := range clean.all {
		original, ok := in.byDigest[r.digest]
		if !ok || original.Partition != r.Partition {
			v.changed = append(v.changed, r)
			continue
		}
		origin := original.place
		if at, any := last[r.Partition]; any && origin.Offset < at && origins[origin] == 0 {
			v.disordered = append(v.disordered, r)
		}
		origins[origin]++
		last[r.Partition] = max(last[r.Partition], origin.Offset)
	}
	return origins
}

// account counts for every input record how often it was forwarded or dropped.
func (v *verdict) account(in *contents, origins map[place]int, dropped *contents) {
	traces := maps.Clone(origins)
	for _, r := range dropped.all {
		traces[r.source]++
	}
	for _, r := range in.all {
		switch n := traces[r.place]; {
		case n == 0:
			v.unaccounted = append(v.unaccounted, r.place)
		case n > 1:
			v.twice = append(v.twice, r.place)
		}
	}
}

const mostExplained = 10

// explain tells all that is known about the IDs that are wrong.
func (s *storm) explain(v verdict, in, clean, dropped *contents) {
	s.t.Helper()
	wrong := map[string][]string{
		"lost": v.lost, "doubled": v.doubled, "changed": idsOf(v.changed),
		"out of order": idsOf(v.disordered),
	}
	if s.delivery == exactlyOnce {
		wrong["repeated"] = v.repeated
		wrong["without a trace"] = idsAt(in, v.unaccounted)
		wrong["with several traces"] = idsAt(in, v.twice)
	}
	for _, what := range slices.Sorted(maps.Keys(wrong)) {
		ids := wrong[what]
		for _, id := range ids[:min(len(ids), mostExplained)] {
			var b strings.Builder
			for _, topic := range []*contents{in, clean, dropped} {
				for _, r := range topic.byID[id] {
					fmt.Fprintf(&b, "\n  %v", r)
				}
			}
			fmt.Fprintf(&b, "\n  the store: %s", s.claimOf(id))
			s.t.Logf("%s: id %s%s", what, id, b.String())
		}
	}
}

func idsOf(records []*seen) (ids []string) {
	for _, r := range records {
		ids = append(ids, r.id)
	}
	return ids
}

func idsAt(in *contents, places []place) (ids []string) {
	wanted := make(map[place]bool, len(places))
	for _, p := range places {
		wanted[p] = true
	}
	for _, r := range in.all {
		if wanted[r.place] {
			ids = append(ids, r.id)
		}
	}
	return ids
}
