package hashlog

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/bits"
	"slices"
)

// mergeWidth is how many neighbours of one size become one index. A look-up then looks into three
// of a size at most, and an entry is written again once for each size.
const mergeWidth = 4

// merge makes few indexes of many, until there is nothing to merge.
func (l *Log) merge(ctx context.Context) error {
	l.tending.Lock()
	defer l.tending.Unlock()
	for ctx.Err() == nil {
		indexes, lives := l.snapshot()
		run := nextMerge(indexes, lives)
		if len(run) == 0 {
			return nil
		}
		if err := l.mergeRun(ctx, run, lives); err != nil {
			return err
		}
	}
	return nil
}

// nextMerge returns neighbours to merge, the youngest first, or one of whose segments half are
// gone.
func nextMerge(indexes []*index, lives map[uint32]bool) []*index {
	end, size := len(indexes), 0
	for i := len(indexes) - 1; i >= 0; i-- {
		if first, last := living(indexes[i:i+1], lives); 2*(last+1-first) <= indexes[i].last+
			1-indexes[i].first {
			return indexes[i : i+1]
		}
		// An old index that is smaller than a younger one counts as of its size.
		if s := sizeClass(indexes[i].entries); s > size {
			end, size = i+1, s
		}
		if end-i == mergeWidth {
			return indexes[i:end]
		}
	}
	return nil
}

// sizeClass is one more for four times as many entries.
func sizeClass(entries int) int { return (bits.Len(uint(entries)) + 1) / 2 }

// living returns the first and the last of the segments that still exist; last+1 == first if none
// does.
func living(run []*index, lives map[uint32]bool) (first, last uint32) {
	first, last = run[0].first, run[len(run)-1].last
	for first <= last && !lives[first] {
		first++
	}
	for last >= first && !lives[last] {
		last--
	}
	return first, last
}

// mergeRun replaces neighbours by one index, without the segments that are gone.
func (l *Log) mergeRun(ctx context.Context, run []*index, lives map[uint32]bool) error {
	first, last := living(run, lives)
	if last < first {
		return l.replaceIndexes(run, nil)
	}
	total := 0
	for _, x := range run {
		total += x.entries
	}
	merged, err := l.makeIndex(first, last, total, func(w *indexWriter) error {
		return w.merge(ctx, run, lives)
	})
	if err != nil {
		return err
	}
	return l.replaceIndexes(run, merged)
}

// snapshot returns the indexes, and the segments that exist. Who holds tending sees neither go
// meanwhile.
func (l *Log) snapshot() (indexes []*index, lives map[uint32]bool) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	lives = make(map[uint32]bool, len(l.segments))
	for number := range l.segments {
		lives[number] = true
	}
	return l.indexes, lives
}

// replaceIndexes puts an index, or none, in the place of neighbours, and deletes their files.
func (l *Log) replaceIndexes(run []*index, by *index) error {
	l.mu.Lock()
	at := slices.Index(l.indexes, run[0])
	indexes := slices.Delete(slices.Clone(l.indexes), at, at+len(run))
	if by != nil {
		indexes = slices.Insert(indexes, at, by)
	}
	l.indexes = indexes
	l.mu.Unlock()
	if err := l.saveManifest(); err != nil {
		return err
	}
	var err error
	for _, x := range run {
		err = errors.Join(err, x.read.Close(), l.o.Disk.Remove(l.path(indexName(x.number))))
	}
	return err
}

// merge writes the entries of living segments, in order.
func (w *indexWriter) merge(ctx context.Context, run []*index, lives map[uint32]bool) error {
	cursors := make([]*cursor, 0, len(run))
	for _, x := range run {
		c := newCursor(x)
		more, err := c.next()
		if err != nil {
			return err
		}
		if more {
			cursors = append(cursors, c)
		}
	}
	for n := 0; len(cursors) > 0; n++ {
		if n%entriesPerPage == 0 && ctx.Err() != nil {
			return context.Cause(ctx)
		}
		least := slices.MinFunc(cursors, func(a, b *cursor) int {
			return compareEntries(a.entry, b.entry)
		})
		if lives[least.entry.at.segment()] {
			if err := w.add(least.entry); err != nil {
				return err
			}
		}
		more, err := least.next()
		if err != nil {
			return err
		}
		if !more {
			cursors = slices.DeleteFunc(cursors, func(c *cursor) bool { return c == least })
		}
	}
	return nil
}

// cursor reads an index from the beginning to the end.
type cursor struct {
	entry entry
	index *index
	from  *bufio.Reader
	page  page
	pages int // read so far
	at    int // of entry in page
	count int // of entries in page
}

func newCursor(x *index) *cursor {
	pages := io.NewSectionReader(x.read, 0, int64(len(x.firsts))*pageBytes)
	return &cursor{index: x, from: bufio.NewReaderSize(pages, writeBuffer)}
}

func (c *cursor) next() (more bool, err error) {
	if c.at == c.count {
		if c.pages == len(c.index.firsts) {
			return false, nil
		}
		if _, err := io.ReadFull(c.from, c.page[:]); err != nil {
			return false, fmt.Errorf("%s: %w", indexName(c.index.number), err)
		}
		if c.count, err = c.page.check(); err != nil {
			return false, fmt.Errorf("%s, page %d: %w", indexName(c.index.number), c.pages, err)
		}
		c.at, c.pages = 0, c.pages+1
	}
	c.entry = c.page.entry(c.at)
	c.at++
	return true, nil
}
