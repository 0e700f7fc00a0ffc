package hashlog

import (
	"context"
	"fmt"

	"github.com/kdedup/kdedup/internal/hashlog/siphash"
)

// Batch is a set of records that are appended together. Its memory is kept from use to use.
type Batch struct {
	raw   []byte // keys and values
	items []item
	ends  int64

	// as Append writes them
	data    []byte
	entries []entry // places are within data
}

// item is a record within raw.
type item struct {
	at, key, value int
	ends           int64
}

// Put adds a record that ends at a time in milliseconds, whatever that is counted from. It ends no
// earlier than the record that it replaces, if there is one: a segment goes when all in it has
// ended, and what it hid would be seen again. A record that shall be replaced by one that ends
// earlier is deleted before. The value is not empty.
func (b *Batch) Put(key, value []byte, ends int64) {
	b.items = append(b.items, item{len(b.raw), len(key), len(value), ends})
	b.raw = append(append(b.raw, key...), value...)
	b.ends = max(b.ends, ends)
}

func (b *Batch) item(i int) (key, value []byte, ends int64) {
	at := &b.items[i]
	behind := at.at + at.key
	return b.raw[at.at:behind:behind], b.raw[behind : behind+at.value], at.ends
}

// Delete says that the key has no record, until the record that it had ends.
func (b *Batch) Delete(key []byte, ends int64) { b.Put(key, nil, ends) }

// Len is the number of records.
func (b *Batch) Len() int { return len(b.items) }

// Reset empties the batch.
func (b *Batch) Reset() { b.raw, b.items, b.ends = b.raw[:0], b.items[:0], 0 }

// maxBatchBytes keeps the places of a batch that has a segment for itself within 32 bits.
const maxBatchBytes = 1 << 31

// Append makes a batch visible to Get. It is durable when its mark is, see Sync. When it returns an
// error that Err does not return too, nothing was appended.
func (l *Log) Append(ctx context.Context, b *Batch) (Mark, error) {
	b.encode(&l.key, l.o.Shape)
	if len(b.data) > maxBatchBytes {
		return 0, fmt.Errorf("append %d records: %d bytes, at most %d", b.Len(), len(b.data),
			maxBatchBytes)
	}
	if err := l.hold(ctx); err != nil {
		return 0, err
	}
	defer l.letGo()
	if err := l.Err(); err != nil {
		return 0, err
	}
	if size := l.active.size.Load(); l.active.compact != l.compact() ||
		size > int64(len(segmentMagic)) && size+int64(len(b.data)) > l.o.SegmentBytes {
		if err := l.turn(ctx); err != nil {
			return 0, err
		}
	}
	if err := l.active.note(); err != nil {
		return 0, l.fail(err)
	}
	start := l.active.size.Load()
	if err := l.active.append(b.data); err != nil {
		return 0, l.fail(err)
	}
	mark := l.syncs.note() // first: a reader that sees a record waits for it
	l.show(b, start)
	return mark, nil
}

// encode writes the records as a segment has them.
func (b *Batch) encode(key *siphash.Key, shape *Shape) {
	b.data, b.entries = b.data[:0], b.entries[:0]
	e := encoder{batch: b}
	if shape != nil {
		e.shape = *shape
	}
	for i := range b.items {
		k, value, ends := b.item(i)
		at := len(b.data)
		if shape == nil {
			b.data = appendRecord(b.data, k, value, ends)
		} else {
			b.data, at = e.append(b.data, i)
		}
		b.entries = append(b.entries, entry{key.Sum64(k), place(at)})
	}
}

// hold takes the token of appending, which letGo gives back.
func (l *Log) hold(ctx context.Context) error {
	select {
	case l.appending <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (l *Log) letGo() { <-l.appending }

func (l *Log) show(b *Batch, start int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.active.noteEnd(b.ends)
	for i, e := range b.entries {
		same := func(at place) bool {
			key, _, _ := b.item(i)
			return l.hasKey(l.active, at.offset(), key)
		}
		l.table.add(entry{e.hash, placeOf(l.active.number, start+e.at.offset())}, same)
	}
}

// turn begins a new segment. It needs the token of appending.
func (l *Log) turn(ctx context.Context) error {
	select {
	case l.unindexed <- struct{}{}:
	case <-l.broken:
		return l.Err()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if err := l.begin(l.active.number + 1); err != nil {
		return l.fail(fmt.Errorf("begin a new segment: %w", err))
	}
	signal(l.filled)
	return nil
}

// begin makes a segment the active one, once the one before is durable, and is only read any more.
func (l *Log) begin(number uint32) error {
	old := l.active
	if err := old.sync(); err != nil {
		return err
	}
	old.synced.Store(true)
	l.syncs.reached(l.syncs.latest())
	next, err := l.createSegment(number)
	if err != nil {
		return err
	}
	l.mu.Lock()
	l.segments[number] = next
	l.full = append(l.full, full{old, l.table})
	l.active, l.table = next, newTable(l.table.count)
	l.mu.Unlock()
	// a sync that just runs ends with an error, which counts for nothing
	if err := old.file.Close(); err != nil {
		return err
	}
	return l.saveManifest()
}

// signal wakes the one that waits on the channel, now or later.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
