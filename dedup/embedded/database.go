package embedded

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"strings"
	"sync/atomic"
	"syscall"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"
	"github.com/prometheus/client_golang/prometheus"
)

// Two memtables may exist, one filling and one being written; Pebble takes their memory out of the
// cache's, and what is left must hold the Bloom filters.
const (
	memtableBytes = 32 << 20
	cacheBytes    = 96 << 20
)

// databaseOptions favour point reads of keys that are absent, which is what most claims are.
func databaseOptions(o Options, h *health) *pebble.Options {
	options := &pebble.Options{
		FS:                          o.FS,
		CacheSize:                   cacheBytes,
		MemTableSize:                memtableBytes,
		MemTableStopWritesThreshold: 3,
		FormatMajorVersion:          pebble.FormatTableFormatV6, // pinned: older releases cannot read a newer one
		Logger:                      h,
	}
	for i := range options.Levels {
		options.Levels[i].FilterPolicy = bloom.FilterPolicy(10)
	}
	options.EnsureDefaults()
	return options
}

// isLocked recognises a directory that another process, or another store of this one, has open. A
// LOCK file that may not be made is another matter: that error names the file.
func isLocked(err error) bool {
	if _, ok := errors.AsType[*fs.PathError](err); ok {
		return false
	}
	return errors.Is(err, syscall.EAGAIN) || errors.Is(err, syscall.EACCES) ||
		strings.Contains(err.Error(), "lock held by current process")
}

// health remembers the first error after which nothing may be written any more: what the files hold
// is then only known after they were opened again.
type health struct {
	broken atomic.Pointer[error]
	log    *slog.Logger
	exit   func(code int)
}

func (h *health) err() error {
	if p := h.broken.Load(); p != nil {
		return *p
	}
	return nil
}

func (h *health) fail(err error) {
	err = fmt.Errorf("the store cannot write its files; make room or mend the disk, then restart: %w", err)
	if h.broken.CompareAndSwap(nil, &err) {
		h.log.Error("embedded store failed", "error", err)
	}
}

// Infof implements pebble.Logger.
func (h *health) Infof(format string, args ...any) {
	h.log.Debug("embedded store", "message", fmt.Sprintf(format, args...))
}

// Errorf implements pebble.Logger.
func (h *health) Errorf(format string, args ...any) {
	h.log.Warn("embedded store", "message", fmt.Sprintf(format, args...))
}

// Fatalf implements pebble.Logger. Pebble relies on it not to return: it calls it when its own
// structures no longer agree with the files. Nothing is lost by the end of the process, because no
// claim was answered before it was synced.
func (h *health) Fatalf(format string, args ...any) {
	h.fail(fmt.Errorf(format, args...))
	h.exit(1)
}

func registerMetrics(reg prometheus.Registerer, db *pebble.DB) {
	gauge := func(name, help string, value func(*pebble.Metrics) float64) {
		reg.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help},
			func() float64 { return value(db.Metrics()) }))
	}
	gauge("kdedup_embedded_disk_bytes", "Size of the store's files.",
		func(m *pebble.Metrics) float64 { return float64(m.DiskSpaceUsage()) })
	gauge("kdedup_embedded_read_amplification", "Files that a read may have to look into.",
		func(m *pebble.Metrics) float64 { return float64(m.ReadAmp()) })
}
