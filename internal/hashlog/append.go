package hashlog

import (
	"context"
	"fmt"

	"github.com/kdedup/kdedup/internal/siphash"
)

// Batch is a set of records that are appended together. Its memory is kept from use to use.
type Batch struct {
	data    []byte
	entries []entry // places are within data; Append computes the hashes
	ends    int64
}

// Put adds a record that ends at a time in milliseconds, whatever that is counted from. It ends no
// earlier than the record that it replaces, if there is one: a segment goes when all in it has
// ended, and what it hid would be seen again. A record that shall be replaced by one that ends
// earlier is deleted before. The value is not empty.
func (b *Batch) Put(key, value []byte, ends int64) {
	b.entries = append(b.entries, entry{at: place(len(b.data))})
	b.data = appendRecord(b.data, key, value, ends)
	b.ends = max(b.ends, ends)
}

// Delete says that the key has no record, until the record that it had ends.
func (b *Batch) Delete(key []byte, ends int64) { b.Put(key, nil, ends) }

// Len is the number of records.
func (b *Batch) Len() int { return len(b.entries) }

// Reset empties the batch.
func (b *Batch) Reset() { b.data, b.entries, b.ends = b.data[:0], b.entries[:0], 0 }

// maxBatchBytes keeps the places of a batch that has a segment for itself within 32 bits.
const maxBatchBytes = 1 << 31

// Append makes a batch visible to Get. It is durable when its mark is, see Sync. When it returns an
// error that Err does not return too, nothing was appended.
func (l *Log) Append(ctx context.Context, b *Batch) (Mark, error) {
	if len(b.data) > maxBatchBytes {
		return 0, fmt.Errorf("append %d records: %d bytes, at most %d", b.Len(), len(b.data),
			maxBatchBytes)
	}
	b.hash(&l.key)
	if err := l.hold(ctx); err != nil {
		return 0, err
	}
	defer l.letGo()
	if err := l.Err(); err != nil {
		return 0, err
	}
	if size := l.active.size.Load(); size > int64(len(segmentMagic)) &&
		size+int64(len(b.data)) > l.o.SegmentBytes {
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

func (b *Batch) hash(key *siphash.Key) {
	for i := range b.entries {
		b.entries[i].hash = key.Sum64(keyIn(b.data[b.entries[i].at.offset():]))
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
	for _, e := range b.entries {
		same := func(at place) bool {
			return l.active.hasKey(at.offset(), keyIn(b.data[e.at.offset():]))
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
