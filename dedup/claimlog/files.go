package claimlog

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"

	"github.com/gofrs/flock"

	"github.com/kdedup/kdedup/internal/durable"
	"github.com/kdedup/kdedup/internal/hashlog"
)

// fileIndex is an index in a directory of this process. It is synced only when its progress is
// saved: the file progress.json names the blocks that the rest of the directory surely has.
// Whatever is wrong with the files, they are made again from the log.
type fileIndex struct {
	dir    string
	log    *slog.Logger
	o      hashlog.Options
	lock   *flock.Flock
	claims *hashlog.Log
	reader *hashlog.Reader
	batch  hashlog.Batch
	start  progress

	showing sync.RWMutex // held by each, for which the log must stay open
}

const (
	progressName = "progress.json"
	claimsName   = "claims"
)

// openFiles opens the index in a directory, which is made if it is missing. One process has it
// open.
func openFiles(dir string, log *slog.Logger) (*fileIndex, error) {
	return openFilesOf(dir, log, hashlog.Options{Logger: log, SegmentBytes: segmentBytes})
}

// segmentBytes is of 196,000 claims of UUIDs. A table in memory says where they are until the
// segment has an index; it grows to twice its size beyond 196,608.
const segmentBytes = 8 << 20

func openFilesOf(dir string, log *slog.Logger, o hashlog.Options) (*fileIndex, error) {
	o.Shape = &claimShape
	return openFilesAs(dir, log, o)
}

func openFilesAs(dir string, log *slog.Logger, o hashlog.Options) (*fileIndex, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	f := &fileIndex{dir: dir, log: log, o: o, lock: flock.New(filepath.Join(dir, "LOCK"))}
	mine, err := f.lock.TryLock()
	if err == nil && !mine {
		err = fmt.Errorf("%s is used by another process: each process needs an index of its own",
			dir)
	}
	if err != nil {
		return nil, err
	}
	if err := f.openSaved(); err != nil {
		log.Warn("the index is made again from the log", "directory", dir, "error", err)
		if err := f.reset(); err != nil {
			return nil, errors.Join(err, f.lock.Unlock())
		}
	}
	return f, nil
}

// openSaved opens what an earlier process left, if it saved how far that goes.
func (f *fileIndex) openSaved() error {
	data, err := os.ReadFile(f.path(progressName))
	if errors.Is(err, fs.ErrNotExist) {
		return f.reset() // nothing, or of a process that ended before it saved anything
	}
	if err != nil {
		return err
	}
	var p progress
	if err := json.Unmarshal(data, &p); err != nil {
		return fmt.Errorf("%s: %w", progressName, err)
	}
	if p.Version < leastVersion || p.Version > progressVersion {
		return fmt.Errorf("%s: version %d, this program knows %d", progressName, p.Version,
			progressVersion)
	}
	if err := f.openClaims(); err != nil {
		return err
	}
	if p.Files != nil {
		if err := f.claims.Reaches(*p.Files); err != nil {
			return fmt.Errorf("%s: %w", progressName, err)
		}
	}
	f.start = p
	return nil
}

func (f *fileIndex) openClaims() (err error) {
	if f.claims, err = hashlog.Open(f.path(claimsName), f.o); err != nil {
		return err
	}
	f.reader = f.claims.NewReader()
	return nil
}

func (f *fileIndex) path(name string) string { return filepath.Join(f.dir, name) }

func (f *fileIndex) end() uint64 { return uint64(f.claims.End()) }

func (f *fileIndex) get(key []byte, since uint64) (value []byte, ends int64, err error) {
	if value, ends, err = f.reader.GetSince(key, hashlog.Point(since)); err != nil {
		return nil, 0, fmt.Errorf("%w: %w", errIndex, err)
	}
	return value, ends, nil
}

func (f *fileIndex) put(key, value []byte, ends int64) { f.batch.Put(key, value, ends) }
func (f *fileIndex) remove(key []byte, ends int64)     { f.batch.Delete(key, ends) }

func (f *fileIndex) flush(ctx context.Context) error {
	if f.batch.Len() == 0 {
		return nil
	}
	defer f.batch.Reset()
	if _, err := f.claims.Append(ctx, &f.batch); err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx) // nothing was appended, nor will it be: the caller ends
		}
		return fmt.Errorf("%w: %w", errIndex, err)
	}
	return nil
}

func (f *fileIndex) each(
	ctx context.Context, after int64, show func(key, value []byte, ends int64) error,
) error {
	f.showing.RLock()
	defer f.showing.RUnlock()
	if f.claims == nil {
		return errIndex
	}
	return f.claims.Each(ctx, after, show)
}

func (f *fileIndex) drop(ctx context.Context, now int64) error {
	if _, err := f.claims.Drop(ctx, now); err != nil && ctx.Err() == nil {
		return fmt.Errorf("%w: %w", errIndex, err)
	}
	return nil
}

func (f *fileIndex) latest() int64   { return f.claims.LatestEnd() }
func (f *fileIndex) saved() progress { return f.start }
func (f *fileIndex) mark() mark      { return mark{f.claims.Latest(), f.claims.End()} }

func (f *fileIndex) save(ctx context.Context, m mark, p progress) error {
	err := f.claims.Sync(ctx, m.synced)
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	var files hashlog.Extent
	if err == nil {
		files, err = f.claims.Extent(m.end)
	}
	if err != nil {
		return fmt.Errorf("%w: %w", errIndex, err)
	}
	p.Version, p.Files = progressVersion, &files
	data, err := json.Marshal(p)
	if err != nil {
		return err
	}
	if err := durable.Replace(durable.System{}, f.path(progressName), data); err != nil {
		return err
	}
	f.start = p
	return nil
}

func (f *fileIndex) size() (claims int, bytes int64) {
	stats := f.claims.Stats()
	return stats.Records, stats.Bytes
}

// reset deletes the progress first: without it the rest counts for nothing.
func (f *fileIndex) reset() error {
	f.showing.Lock()
	defer f.showing.Unlock()
	f.start = progress{}
	f.batch.Reset()
	if err := os.Remove(f.path(progressName)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := (durable.System{}).SyncDirectory(f.dir); err != nil {
		return err
	}
	if f.claims != nil {
		_ = f.claims.Close() // they may be what is wrong
		f.claims = nil
	}
	if err := os.RemoveAll(f.path(claimsName)); err != nil {
		return err
	}
	if err := os.Mkdir(f.path(claimsName), 0o700); err != nil {
		return err
	}
	return f.openClaims()
}

func (f *fileIndex) close() error {
	f.showing.Lock()
	defer f.showing.Unlock()
	var err error
	if f.claims != nil {
		err = f.claims.Close()
	}
	return errors.Join(err, f.lock.Unlock())
}
