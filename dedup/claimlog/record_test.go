package claimlog

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/internal/hashlog"
)

// appendFirst writes a claim as the first versions did.
func (h *held) appendFirst(to []byte) []byte {
	to = append(append(to, firstRecord), h.owner.TopicID[:]...)
	to = binary.BigEndian.AppendUint32(to, uint32(h.owner.Partition))
	to = binary.BigEndian.AppendUint64(to, uint64(h.owner.Offset))
	to = binary.BigEndian.AppendUint32(to, uint32(h.owner.LeaderEpoch))
	to = append(to, h.fingerprint[:]...)
	to = binary.BigEndian.AppendUint64(to, uint64(h.claimedAt))
	return binary.BigEndian.AppendUint64(to, uint64(h.place))
}

func TestAClaimIsReadAsItWasKept(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	numbers := []int64{0, 1, -1, 255, 1<<16 - 1, 1 << 16, 1<<48 - 1, 1 << 48, math.MaxInt64,
		math.MinInt64}
	number := func() int64 {
		if n := random.IntN(2 * len(numbers)); n < len(numbers) {
			return numbers[n]
		}
		return int64(random.Uint64())
	}
	for range 2000 {
		want := held{owner: dedup.Coordinates{Partition: int32(number()), Offset: number(),
			LeaderEpoch: int32(number())}, claimedAt: number(), place: number()}
		binary.LittleEndian.PutUint64(want.owner.TopicID[3:], random.Uint64())
		binary.LittleEndian.PutUint64(want.fingerprint[:], random.Uint64())
		want.fingerprint[15] = byte(random.Uint32())
		for version, data := range [][]byte{want.append(nil), want.appendFirst(nil)} {
			var got held
			if err := got.parse(data); err != nil || got != want {
				t.Fatalf("%d: %+v, %v; want %+v", version, got, err, want)
			}
			if err := got.parse(data[:len(data)-2]); err == nil {
				t.Fatal("a claim that is cut off is read")
			}
		}
	}
}

// indexID is one of the usual kinds.
func indexID(i int) dedup.ID {
	if i%4 == 0 {
		return dedup.ID(fmt.Sprint("order-", i))
	}
	return dedup.ID(fmt.Sprintf("%08x-aaaa-4bbb-8ccc-%012x", i, i))
}

// An index that an earlier version has left is read, and goes on in the present format.
func TestAnIndexOfAnEarlierVersionIsRead(t *testing.T) {
	dir := t.TempDir()
	tag := new(shardState).tag(testScope.Name)
	claim := func(i int) held {
		return held{owner: dedup.Coordinates{TopicID: [16]byte{1}, Offset: int64(i)},
			claimedAt: 1000, place: int64(i / 100)}
	}
	key := func(i int) []byte { return append(tag[:len(tag):len(tag)], indexID(i)...) }
	o := hashlog.Options{SegmentBytes: 20_000}
	fill := func(x *fileIndex, from, to int, value func(*held) []byte) {
		for i := from; i < to; i++ {
			mine := claim(i)
			x.put(key(i), value(&mine), 5000)
			if i%100 == 99 {
				if err := x.flush(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
		}
		p := progress{Log: "log", Shards: []shardState{{Time: 1000}}}
		if err := x.save(t.Context(), x.mark(), p); err != nil {
			t.Fatal(err)
		}
	}
	earlier, err := openFilesAs(dir, quietLog, o) // without a shape
	if err != nil {
		t.Fatal(err)
	}
	fill(earlier, 0, 1000, func(h *held) []byte { return h.appendFirst(nil) })
	if err := earlier.close(); err != nil {
		t.Fatal(err)
	}
	for known := 1000; known <= 2000; known += 500 {
		files, err := openFilesOf(dir, quietLog, o)
		if err != nil {
			t.Fatal(err)
		}
		if files.saved().Log != "log" {
			t.Fatal("the index was made again")
		}
		fill(files, known, known+500, func(h *held) []byte { return h.append(nil) })
		m := machine{index: files}
		for i := range known + 500 {
			owner, ends, found, err := m.last(key(i), 0)
			if err != nil || !found || ends != 5000 || owner != claim(i) {
				t.Fatalf("claim %d of %d: %+v until %d, %t, %v", i, known, owner, ends, found, err)
			}
		}
		if err := files.close(); err != nil {
			t.Fatal(err)
		}
	}
}

// What a claim takes is what an operator buys disks for.
func TestAClaimTakesFewBytesOfAnIndex(t *testing.T) {
	files, err := openFiles(t.TempDir(), quietLog)
	if err != nil {
		t.Fatal(err)
	}
	defer files.close()
	tag := new(shardState).tag(testScope.Name)
	const blocks, each = 50, 500
	offset := int64(1<<40 - blocks*each/2)
	for block := range int64(blocks) {
		for i := range int64(each) {
			// two partitions in turns, as of a lane that reads several
			mine := held{owner: dedup.Coordinates{TopicID: [16]byte{1}, Partition: int32(i % 2),
				Offset: offset}, claimedAt: block, place: block}
			id := fmt.Sprintf("%08x-aaaa-4bbb-8ccc-%012x", offset%(1<<31), i)
			offset++
			files.put(append(tag[:len(tag):len(tag)], id...), mine.append(nil), block+1000)
		}
		if err := files.flush(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	// an entry of an index file takes up to 18 bytes more, once the segment is full
	if _, bytes := files.size(); bytes > 46*blocks*each {
		t.Errorf("%.1f bytes a claim", float64(bytes)/blocks/each)
	}
}
