package hashlog

import "math/bits"

// place says where a record is: the number of its segment, and where it begins in that. No place is 0.
type place uint64

func placeOf(segment uint32, offset int64) place { return place(segment)<<32 | place(offset) }

func (p place) segment() uint32 { return uint32(p >> 32) }
func (p place) offset() int64   { return int64(uint32(p)) }

// entry leads from a hash to a record of a key with that hash.
type entry struct {
	hash uint64
	at   place
}

// table has the entries of one segment in memory. A hash may have several; later places are newer.
type table struct {
	slots []entry // a power of two, at most three quarters of them taken; those without a place are free
	count int
}

const leastSlots = 1 << 10

func newTable() *table { return &table{slots: make([]entry, leastSlots)} }

func (t *table) add(e entry) {
	if t.count >= len(t.slots)/4*3 {
		t.grow()
	}
	t.put(e)
	t.count++
}

func (t *table) put(e entry) {
	i := t.slot(e.hash)
	for t.slots[i].at != 0 {
		i = (i + 1) & (len(t.slots) - 1)
	}
	t.slots[i] = e
}

// slot is where the entries of a hash begin: its high bits, which the buckets of a caller do not fix.
func (t *table) slot(hash uint64) int {
	return int(hash * 0x9e3779b97f4a7c15 >> (65 - bits.Len(uint(len(t.slots)))))
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

// entries returns all, in no order.
func (t *table) entries() []entry {
	list := make([]entry, 0, t.count)
	for _, e := range t.slots {
		if e.at != 0 {
			list = append(list, e)
		}
	}
	return list
}
