package hashlog

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"slices"

	"github.com/kdedup/kdedup/internal/durable"
	"github.com/kdedup/kdedup/internal/hashlog/bloom"
)

// indexWriter writes a new index from entries in order.
type indexWriter struct {
	index *index
	name  string
	disk  durable.Disk
	file  durable.File
	to    *bufio.Writer
	page  page
	count int // of entries in page
}

const (
	writeBuffer = 256 << 10
	writePiece  = 64 << 10
)

// makeIndex writes an index of the segments from first to last, with n entries at most. fill adds
// them.
func (l *Log) makeIndex(
	first, last uint32, entries int, fill func(*indexWriter) error,
) (*index, error) {
	w, err := l.newIndex(first, last, entries)
	if err != nil {
		return nil, err
	}
	if err := fill(w); err != nil {
		return nil, w.drop(err)
	}
	x, err := w.end()
	if err != nil {
		return nil, w.drop(err)
	}
	return x, nil
}

func (l *Log) newIndex(first, last uint32, entries int) (*indexWriter, error) {
	number := l.lastIndex.Add(1)
	name := l.path(indexName(number))
	file, err := l.o.Disk.Create(name)
	if err != nil {
		return nil, err
	}
	return &indexWriter{
		index: &index{number: number, first: first, last: last, read: l.o.Files.of(name),
			filter: bloom.New(entries, filterBits)},
		name: name, disk: l.o.Disk, file: file, to: bufio.NewWriterSize(file, writeBuffer),
	}, nil
}

func (w *indexWriter) add(e entry) error {
	if w.count == entriesPerPage {
		if err := w.endPage(); err != nil {
			return err
		}
	}
	if w.count == 0 {
		w.index.firsts = append(w.index.firsts, e.hash)
	}
	w.page.put(w.count, e)
	w.count++
	w.index.entries++
	w.index.filter.Add(e.hash)
	return nil
}

func (w *indexWriter) endPage() error {
	binary.LittleEndian.PutUint32(w.page[4:], uint32(w.count))
	seal(w.page[:])
	_, err := w.to.Write(w.page[:])
	w.page, w.count = page{}, 0
	return err
}

// end makes the file durable, closes it, and returns the index that was written.
func (w *indexWriter) end() (*index, error) {
	if w.count > 0 {
		if err := w.endPage(); err != nil {
			return nil, err
		}
	}
	foot, err := w.writeMemory()
	if err != nil {
		return nil, err
	}
	w.index.bytes += int64(len(w.index.firsts)*pageBytes + len(foot))
	if _, err := w.to.Write(foot); err != nil {
		return nil, err
	}
	if err := w.to.Flush(); err != nil {
		return nil, err
	}
	if err := w.file.Sync(); err != nil {
		return nil, err
	}
	return w.index, w.file.Close()
}

// writeMemory writes what is kept in memory, and returns the foot. It writes in pieces: the bytes
// of a whole filter would be as large as the filter.
func (w *indexWriter) writeMemory() (foot []byte, err error) {
	sum := crc32.New(castagnoli)
	piece := make([]byte, 0, writePiece)
	write := func(data []byte) error {
		w.index.bytes += int64(len(data))
		sum.Write(data)
		_, err := w.to.Write(data)
		return err
	}
	for firsts := range slices.Chunk(w.index.firsts, writePiece/8) {
		piece = piece[:0]
		for _, hash := range firsts {
			piece = binary.LittleEndian.AppendUint64(piece, hash)
		}
		if err := write(piece); err != nil {
			return nil, err
		}
	}
	for blocks := range slices.Chunk(w.index.filter, writePiece/bloom.BlockBytes) {
		if err := write(blocks.AppendTo(piece[:0])); err != nil {
			return nil, err
		}
	}
	foot = binary.LittleEndian.AppendUint64(append([]byte(nil), indexMagic...),
		uint64(len(w.index.firsts)))
	foot = binary.LittleEndian.AppendUint64(foot, uint64(w.index.entries))
	sum.Write(foot)
	return binary.LittleEndian.AppendUint32(foot, sum.Sum32()), nil
}

// drop deletes what was written.
func (w *indexWriter) drop(why error) error {
	return fmt.Errorf("write %s: %w", w.name,
		errors.Join(why, w.file.Close(), w.disk.Remove(w.name)))
}
