package report

import (
	"bufio"
	"container/heap"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
)

// source yields entries in order.
type source interface {
	next() (entry, error) // io.EOF after the last one
	io.Closer
}

func closeAll(sources []source) error {
	var errs []error
	for _, s := range sources {
		errs = append(errs, s.Close())
	}
	return errors.Join(errs...)
}

type memoryRun struct{ entries []entry }

func (m *memoryRun) next() (entry, error) {
	if len(m.entries) == 0 {
		return nil, io.EOF
	}
	first := m.entries[0]
	m.entries = m.entries[1:]
	return first, nil
}

func (m *memoryRun) Close() error { return nil }

type fileRun struct {
	file   *os.File
	from   *bufio.Reader
	buffer []byte
}

func openRun(name string) (*fileRun, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	return &fileRun{file: file, from: bufio.NewReaderSize(file, runBuffer)}, nil
}

func (f *fileRun) next() (entry, error) {
	var length [2]byte
	if _, err := io.ReadFull(f.from, length[:]); err != nil {
		return nil, err
	}
	n := int(binary.BigEndian.Uint16(length[:]))
	f.buffer = slices.Grow(f.buffer[:0], n)[:n]
	if _, err := io.ReadFull(f.from, f.buffer); err != nil {
		return nil, fmt.Errorf("%s: %w", f.file.Name(), io.ErrUnexpectedEOF)
	}
	return f.buffer, nil
}

func (f *fileRun) Close() error { return f.file.Close() }

// merge visits the entries of all sources in order.
func merge(sources []source, visit func(entry) error) error {
	var heads mergeHeap
	for _, s := range sources {
		if err := heads.advance(s); err != nil {
			return err
		}
	}
	for len(heads) > 0 {
		if err := visit(heads[0].entry); err != nil {
			return err
		}
		next, err := heads[0].source.next()
		switch {
		case err == io.EOF:
			heap.Pop(&heads)
		case err != nil:
			return err
		default:
			heads[0].entry = next
			heap.Fix(&heads, 0)
		}
	}
	return nil
}

type head struct {
	entry  entry
	source source
}

// mergeHeap has the source with the lowest entry first.
type mergeHeap []head

func (h *mergeHeap) advance(s source) error {
	first, err := s.next()
	if err == io.EOF {
		return nil
	}
	if err == nil {
		heap.Push(h, head{first, s})
	}
	return err
}

func (h mergeHeap) Len() int           { return len(h) }
func (h mergeHeap) Less(i, j int) bool { return compareEntries(h[i].entry, h[j].entry) < 0 }
func (h mergeHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }

// Push implements heap.Interface.
func (h *mergeHeap) Push(x any) { *h = append(*h, x.(head)) }

// Pop implements heap.Interface.
func (h *mergeHeap) Pop() any {
	last := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return last
}
