package proposal

import (
	"slices"

	"github.com/twmb/franz-go/pkg/kgo"
)

// newestLooked is how many of the newest records validate and a start look at. Where none of them
// has an ID they refuse the place, so it must not be proposed.
const newestLooked = 100

const notLately = "none of the newest records has it: its producer has stopped writing it"

// newest are the last records of the sample by their index, in proportion from each partition.
func newest(records []*kgo.Record) (all []int) {
	of := make(map[int32][]int)
	for i, r := range records {
		of[r.Partition] = append(of[r.Partition], i)
	}
	for _, part := range of {
		n := min(len(part), max(1, len(part)*newestLooked/max(len(records), newestLooked)))
		all = append(all, part[len(part)-n:]...)
	}
	slices.Sort(all)
	return all
}

// lately reports whether one of the newest records has something. Tombstones say nothing: it is
// true where all of them are such.
func lately(records []*kgo.Record, newest []int, has func(i int) bool) bool {
	alive := slices.DeleteFunc(slices.Clone(newest), func(i int) bool {
		return records[i].Value == nil
	})
	return len(alive) == 0 || slices.ContainsFunc(alive, has)
}

// refuseForgotten refuses what records had once.
func (j *judge) refuseForgotten() {
	newest := newest(j.records)
	for _, c := range j.all {
		has := func(i int) bool { return c.ids[i] != 0 }
		if c.Refused == "" && !lately(j.records, newest, has) {
			c.Refused = notLately
		}
	}
}
