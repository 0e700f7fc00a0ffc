// Package hashlog keeps records under keys in append-only files of one process. It is made for keys
// that are random, mostly new, and end by themselves: nothing is sorted by key, nothing is
// rewritten but indexes of 16 bytes per record, and what has ended is deleted a whole file at a
// time.
//
//	Append ─► segment file, 32 MiB (synced together) ─► table in memory: hash → place
//	          when it is full: table ─► index file, sorted by hash, with a Bloom filter
//	          four indexes of a size ─► one
//
// The newest record of a key counts. Get looks into the tables, then into the indexes, the young
// ones first; a Bloom filter in memory, 12 bits per record, passes over nearly all that do not have
// the key. The hash has a secret key, which is random: a client that chooses keys cannot make them
// collide.
//
// The file MANIFEST names the segments and the indexes that count. An index that is lost or damaged
// is made again from its segments. A segment is never changed once the next one was begun; one that
// is lost or too short is an error. Notes in the newest one say how far it was synced: what is
// wrong before such a place is an error too, and not what a crash left unfinished.
package hashlog

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/kdedup/kdedup/internal/durable"
	"github.com/kdedup/kdedup/internal/hashlog/siphash"
)

// Options of a log; the zero value is good.
type Options struct {
	SegmentBytes      int64        // a segment of this size is full; 0: 32 MiB
	Logger            *slog.Logger // nil: nothing is logged
	Disk              durable.Disk // nil: the system's
	Files             *Files       // open files, to share them among logs; nil: 256 of this log
	ManualMaintenance bool         // the caller calls Tend, in place of goroutines of the log
	Shape             *Shape       // nil: records have nothing in common
}

const defaultSegmentBytes = 32 << 20

func (o Options) withDefaults() Options {
	if o.SegmentBytes == 0 {
		o.SegmentBytes = defaultSegmentBytes
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Disk == nil {
		o.Disk = durable.System{}
	}
	if o.Files == nil {
		o.Files = NewFiles(mostOpen)
	}
	return o
}

// mostUnindexed bounds the memory of tables: an append waits while this number of segments
// has no index.
const mostUnindexed = 2

// Log is safe for concurrent use, except that Close comes last. One process has a directory open.
type Log struct {
	dir     string
	o       Options
	key     siphash.Key // of the hashes, secret
	failure atomic.Pointer[error]
	syncs   syncs

	broken chan struct{} // closed once failure is set

	appending chan struct{} // holds a token while somebody appends
	own       *Reader       // of whoever holds it
	unindexed chan struct{} // holds a token for each full segment that has no index

	manifest sync.Mutex // held while the file MANIFEST is written
	tending  sync.Mutex // held while segments are deleted, or indexes replaced

	mu       sync.RWMutex // guards what look-ups see
	segments map[uint32]*segment
	active   *segment // the newest, which is appended to
	table    *table   // of the active segment
	full     []full   // segments that wait for their index, oldest first
	indexes  []*index // oldest first

	lastIndex atomic.Uint32 // number of an index

	stop       context.CancelFunc
	filled     chan struct{} // a segment became full
	indexed    chan struct{} // an index was added
	background sync.WaitGroup
}

// full is a segment that is not appended to any more.
type full struct {
	segment *segment
	table   *table
}

// Open opens the log in a directory, or makes a new one. The directory exists.
func Open(dir string, o Options) (*Log, error) {
	l := &Log{
		dir: dir, o: o.withDefaults(), broken: make(chan struct{}),
		segments: make(map[uint32]*segment), table: newTable(0),
		appending: make(chan struct{}, 1), unindexed: make(chan struct{}, mostUnindexed),
		filled: make(chan struct{}, 1), indexed: make(chan struct{}, 1),
	}
	l.syncs.sync, l.syncs.err = l.syncActive, l.Err
	l.own = l.NewReader()
	if err := l.recover(); err != nil {
		return nil, fmt.Errorf("open log %s: %w", dir, errors.Join(err, l.closeFiles()))
	}
	ctx, cancel := context.WithCancel(context.Background())
	l.stop = cancel
	if !l.o.ManualMaintenance {
		l.background.Go(func() { l.whenever(ctx, l.filled, l.indexFull) })
		l.background.Go(func() { l.whenever(ctx, l.indexed, l.merge) })
		signal(l.indexed) // a merge may have been interrupted
	}
	return l, nil
}

// Close waits for what runs, and syncs what was appended.
func (l *Log) Close() error {
	l.stop()
	l.background.Wait()
	err := l.Sync(context.Background(), l.Latest())
	l.syncs.running.Wait()
	if err == nil {
		err = l.saveManifest() // which says how much of the newest segment there must be
	}
	if err := errors.Join(err, l.closeFiles()); err != nil {
		return fmt.Errorf("close log %s: %w", l.dir, err)
	}
	return nil
}

func (l *Log) closeFiles() (err error) {
	if l.active != nil {
		err = l.active.file.Close()
	}
	for _, s := range l.segments {
		err = errors.Join(err, s.read.Close())
	}
	for _, x := range l.indexes {
		err = errors.Join(err, x.read.Close())
	}
	return err
}

// Err is the error after which nothing is written any more, and nothing may be believed that was
// not synced before: what the files hold is only known once they were opened again.
func (l *Log) Err() error {
	if p := l.failure.Load(); p != nil {
		return *p
	}
	return nil
}

// fail keeps the first error, and returns its own.
func (l *Log) fail(err error) error {
	if l.failure.CompareAndSwap(nil, &err) {
		l.o.Logger.Error("nothing is written any more until a restart",
			"directory", l.dir, "error", err)
		close(l.broken)
	}
	return err
}

// Stats describe the files.
type Stats struct {
	Bytes    int64 // of all segments and indexes
	Segments int
	Records  int // one for each key, and those that it had in other segments
	Indexes  int // that a look-up may have to look into, with the tables in memory
}

// Empty reports whether nothing was appended that is still there.
func (l *Log) Empty() bool {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return len(l.indexes) == 0 && len(l.full) == 0 && l.table.count == 0
}

// Stats returns what there is now.
func (l *Log) Stats() Stats {
	l.mu.RLock()
	defer l.mu.RUnlock()
	stats := Stats{Segments: len(l.segments), Records: l.table.count,
		Indexes: len(l.indexes) + len(l.full) + 1}
	for _, s := range l.segments {
		stats.Bytes += s.size.Load()
	}
	for _, x := range l.indexes {
		stats.Bytes += x.bytes
		stats.Records += x.entries
	}
	for _, f := range l.full {
		stats.Records += f.table.count
	}
	return stats
}
