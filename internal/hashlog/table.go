package hashlog

import (
	"cmp"
	"math/bits"
)

// place says where a record is: the number of its segment, and where it begins in that. No place is
// 0.
type place uint64

func placeOf(segment uint32, offset int64) place { return place(segment)<<32 | place(offset) }

func (p place) segment() uint32 { return uint32(p >> 32) }
func (p place) offset() int64   { return int64(uint32(p)) }

// entry leads from a hash to a record of a key with that hash.
type entry struct {
	hash uint64
	at   place
}

func compareEntries(a, b entry) int {
	return cmp.Or(cmp.Compare(a.hash, b.hash), cmp.Compare(a.at, b.at))
}

// table has the entries of one segment in memory, one for each key. A hash may have several; later
// places are newer.
type table struct {
	// a power of two, at most three quarters of them taken; those without a place are free
	slots []entry
	count int
}

const leastSlots = 1 << 10

// newTable returns an empty table that takes n entries before it grows.
func newTable(entries int) *table {
	return &table{slots: make([]entry, max(leastSlots, 1<<bits.Len(uint(entries)*4/3)))}
}

// add puts an entry in the place of the one of the same key. same tells whether the record at a
// place, which has the hash, has the key too; nil: none has.
func (t *table) add(e entry, same func(place) bool) {
	if t.count >= len(t.slots)/4*3 {
		t.grow()
	}
	i := t.slot(e.hash)
	for ; t.slots[i].at != 0; i = (i + 1) & (len(t.slots) - 1) {
		if t.slots[i].hash == e.hash && same != nil && same(t.slots[i].at) {
			t.slots[i] = e
			return
		}
	}
	t.slots[i] = e
	t.count++
}

// put is for keys that the table does not have.
func (t *table) put(e entry) {
	i := t.slot(e.hash)
	for t.slots[i].at != 0 {
		i = (i + 1) & (len(t.slots) - 1)
	}
	t.slots[i] = e
}

// slot is where the entries of a hash begin. Slots are in the order of hashes.
func (t *table) slot(hash uint64) int {
	return int(hash >> (65 - bits.Len(uint(len(t.slots)))))
}

func (t *table) grow() {
	old := t.slots
	t.slots = make([]entry, 2*len(old))
	for _, e := range old {
		if e.at != 0 {
			t.put(e)
		}
	}
}

// find appends the places of a hash, in no order.
func (t *table) find(to []place, hash uint64) []place {
	for i := t.slot(hash); t.slots[i].at != 0; i = (i + 1) & (len(t.slots) - 1) {
		if t.slots[i].hash == hash {
			to = append(to, t.slots[i].at)
		}
	}
	return to
}

// sorted returns all. They stand in order already, but for those that found their slot taken.
func (t *table) sorted() []entry {
	list := make([]entry, 0, t.count)
	var beyond []entry // went on from the last slot to the first
	for i, e := range t.slots {
		switch {
		case e.at == 0:
		case t.slot(e.hash) > i:
			beyond = append(beyond, e)
		default:
			list = insert(list, e)
		}
	}
	for _, e := range beyond {
		list = insert(list, e)
	}
	return list
}

// insert puts an entry in its place, which is near the end.
func insert(list []entry, e entry) []entry {
	list = append(list, e)
	for i := len(list) - 1; i > 0 && compareEntries(list[i], list[i-1]) < 0; i-- {
		list[i], list[i-1] = list[i-1], list[i]
	}
	return list
}
