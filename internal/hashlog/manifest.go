package hashlog

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/kdedup/kdedup/internal/durable"
	"github.com/kdedup/kdedup/internal/hashlog/siphash"
)

// The file MANIFEST names what counts. It is replaced as a whole, so that a crash leaves the old or
// the new one; files that it does not name were begun and not finished, or are not needed any more.
type manifest struct {
	Version  int             `json:"version"`
	HashKey  []byte          `json:"hash_key"` // of all indexes
	Segments []segmentRecord `json:"segments"` // in order; the last one is appended to
	// in the order of the segments, of which each is in one at most
	Indexes []indexRecord `json:"indexes"`
}

// segmentRecord describes a segment. The last one grows, also while nothing is written here.
type segmentRecord struct {
	Number uint32 `json:"number"`
	Bytes  int64  `json:"bytes,omitempty"` // of the last one those that were durable
	Ends   int64  `json:"ends,omitempty"`
	// see Shape; of the last one its first bytes tell
	Compact bool `json:"compact,omitempty"`
}

// indexRecord describes an index of the segments from First to Last.
type indexRecord struct {
	Number uint32 `json:"number"`
	First  uint32 `json:"first"`
	Last   uint32 `json:"last"`
}

const (
	manifestName    = "MANIFEST"
	manifestVersion = 3 // of logs with compact segments, which earlier versions do not know
	plainVersion    = 2
	firstVersion    = 1 // had no key
)

// Exists tells whether a directory has a log.
func Exists(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, manifestName))
	return !errors.Is(err, fs.ErrNotExist)
}

func (l *Log) readManifest() (m manifest, found bool, err error) {
	name := l.path(manifestName)
	data, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return m, false, nil
	}
	if err == nil {
		err = json.Unmarshal(data, &m)
	}
	if err == nil && (m.Version < firstVersion || m.Version > manifestVersion) {
		err = fmt.Errorf("version %d, this program knows %d", m.Version, manifestVersion)
	}
	if err == nil && m.Version > firstVersion && len(m.HashKey) != len(siphash.Key{}) {
		err = errors.New("no key of the hashes")
	}
	if err == nil && len(m.Segments) == 0 {
		err = errors.New("no segments")
	}
	if err != nil {
		return m, true, fmt.Errorf("%s: %w: %w", name, ErrDamaged, err)
	}
	return m, true, nil
}

// saveManifest makes the present state durable.
func (l *Log) saveManifest() error {
	l.manifest.Lock()
	defer l.manifest.Unlock()
	data, err := json.Marshal(l.describe())
	if err != nil {
		return err
	}
	return durable.Replace(l.o.Disk, l.path(manifestName), data)
}

func (l *Log) describe() manifest {
	l.mu.RLock()
	defer l.mu.RUnlock()
	m := manifest{Version: plainVersion, HashKey: l.key[:]}
	for number, s := range l.segments {
		d := segmentRecord{Number: number, Bytes: s.durable.Load(), Compact: s.compact}
		if s.compact {
			m.Version = manifestVersion
		}
		if s != l.active {
			d.Bytes, d.Ends = s.size.Load(), s.ends.Load()
		}
		m.Segments = append(m.Segments, d)
	}
	slices.SortFunc(m.Segments, func(a, b segmentRecord) int {
		return cmp.Compare(a.Number, b.Number)
	})
	for _, x := range l.indexes {
		m.Indexes = append(m.Indexes, indexRecord{x.number, x.first, x.last})
	}
	return m
}
