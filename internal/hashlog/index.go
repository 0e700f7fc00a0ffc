package hashlog

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"sort"

	"github.com/kdedup/kdedup/internal/hashlog/bloom"
)

// An index file is pages of entries, sorted by hash and place, and behind them: the first hash of
// every page, the Bloom filter, and a foot with the checksum of these. A page is its checksum, the
// number of its entries, and the entries; all numbers little-endian.
const (
	pageBytes      = 4096
	pageHead       = 4 + 4
	entryBytes     = 8 + 8
	entriesPerPage = (pageBytes - pageHead) / entryBytes
	filterBits     = 12 // of the Bloom filter, for each entry

	footBytes = 8 + 8 + 8 + 4
)

var indexMagic = []byte("kdindex\x02") // 1: of hashes without a key

type page [pageBytes]byte

// index leads from hashes to places in the segments from first to last.
type index struct {
	number      uint32
	first, last uint32
	read        *readFile
	entries     int
	bytes       int64
	firsts      []uint64 // the first hash of every page
	filter      bloom.Filter
}

func indexName(number uint32) string { return fmt.Sprintf("index-%010d", number) }

// openIndex reads what is kept in memory.
func (l *Log) openIndex(d indexRecord) (*index, error) {
	name := l.path(indexName(d.Number))
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	x := &index{number: d.Number, first: d.First, last: d.Last, read: l.o.Files.of(name)}
	err = x.load(file)
	if err := errors.Join(err, file.Close()); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return x, nil
}

func (x *index) load(file *os.File) error {
	info, err := file.Stat()
	if err != nil {
		return err
	}
	var foot [footBytes]byte
	x.bytes = info.Size()
	if _, err := file.ReadAt(foot[:], x.bytes-footBytes); err != nil {
		return fmt.Errorf("%w: cut off: %w", ErrDamaged, err)
	}
	pages, behind, err := x.parseFoot(foot[:])
	if err != nil {
		return err
	}
	sum := crc32.New(castagnoli)
	from := io.TeeReader(io.NewSectionReader(file, int64(pages)*pageBytes, int64(behind)), sum)
	if err := x.readMemory(from, pages, behind-8*pages); err != nil {
		return fmt.Errorf("%w: cut off: %w", ErrDamaged, err)
	}
	sum.Write(foot[:footBytes-4])
	if sum.Sum32() != binary.LittleEndian.Uint32(foot[footBytes-4:]) {
		return fmt.Errorf("%w: the checksum is wrong", ErrDamaged)
	}
	return nil
}

// readMemory reads in pieces, as writeMemory writes.
func (x *index) readMemory(from io.Reader, pages, filter int) error {
	firsts := make([]byte, 8*pages)
	if _, err := io.ReadFull(from, firsts); err != nil {
		return err
	}
	x.firsts = make([]uint64, pages)
	for i := range x.firsts {
		x.firsts[i] = binary.LittleEndian.Uint64(firsts[8*i:])
	}
	x.filter = make(bloom.Filter, 0, filter/bloom.BlockBytes)
	piece := make([]byte, writePiece)
	for ; filter > 0; filter -= len(piece) {
		piece = piece[:min(len(piece), filter)]
		if _, err := io.ReadFull(from, piece); err != nil {
			return err
		}
		blocks, err := bloom.Parse(piece)
		if err != nil {
			return err
		}
		x.filter = append(x.filter, blocks...)
	}
	return nil
}

// parseFoot returns the number of pages, and of bytes between them and the foot.
func (x *index) parseFoot(foot []byte) (pages, behind int, err error) {
	if string(foot[:8]) != string(indexMagic) {
		return 0, 0, fmt.Errorf("%w: it does not end as an index does", ErrDamaged)
	}
	x.entries = int(binary.LittleEndian.Uint64(foot[16:]))
	count := binary.LittleEndian.Uint64(foot[8:])
	left := x.bytes - footBytes - int64(count)*(pageBytes+8)
	if count > uint64(x.bytes/pageBytes) || left < 0 {
		return 0, 0, fmt.Errorf("%w: %d pages in %d bytes", ErrDamaged, count, x.bytes)
	}
	return int(count), int(left) + 8*int(count), nil
}

// find appends the places of a hash. Nearly always one page is read.
func (x *index) find(to []place, p *page, hash uint64) ([]place, error) {
	behind := sort.Search(len(x.firsts), func(i int) bool { return x.firsts[i] > hash })
	for i := behind - 1; i >= 0; i-- {
		count, err := x.readPage(p, i)
		if err != nil {
			return to, err
		}
		begin := sort.Search(count, func(j int) bool { return p.entry(j).hash >= hash })
		for j := begin; j < count && p.entry(j).hash == hash; j++ {
			to = append(to, p.entry(j).at)
		}
		if x.firsts[i] < hash {
			break
		}
	}
	return to, nil
}

func (x *index) readPage(p *page, i int) (entries int, err error) {
	if _, err := x.read.ReadAt(p[:], int64(i)*pageBytes); err != nil && err != io.EOF {
		return 0, fmt.Errorf("%s: %w", indexName(x.number), err)
	}
	if entries, err = p.check(); err != nil {
		return 0, fmt.Errorf("%s, page %d: %w", indexName(x.number), i, err)
	}
	return entries, nil
}

// check returns how many entries a page has.
func (p *page) check() (entries int, err error) {
	entries = int(binary.LittleEndian.Uint32(p[4:]))
	if !intact(p[:]) || entries > entriesPerPage {
		return 0, fmt.Errorf("%w: delete this file, it is made again at the next start", ErrDamaged)
	}
	return entries, nil
}

func (p *page) entry(i int) entry {
	at := p[pageHead+i*entryBytes:]
	return entry{binary.LittleEndian.Uint64(at), place(binary.LittleEndian.Uint64(at[8:]))}
}

func (p *page) put(i int, e entry) {
	at := p[pageHead+i*entryBytes:]
	binary.LittleEndian.PutUint64(at, e.hash)
	binary.LittleEndian.PutUint64(at[8:], uint64(e.at))
}
