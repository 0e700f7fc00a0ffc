package claimlog

import (
	"crypto/rand"
	"encoding/binary"
	"sync/atomic"
	"time"
)

// A log that an earlier version began has blocks of firstVersion, and its processes stop at a newer
// one: to pass over it would part the verdicts. So a process writes newer ones there only once it
// has read one, or once no process of such a version has written anything for a time. All blocks
// behind a newer one are judged by its rules, in every process that goes on. A log that this
// version began has the newest ones from the start.

// processMark begins the IDs of processes that read blocks of the present version. Those of earlier
// versions are random numbers: one of sixteen million has it, too.
const (
	processMark = 0x6b6432
	markShift   = 40
)

func newProcess() uint64 {
	var random [8]byte
	_, _ = rand.Read(random[:]) // never fails
	return processMark<<markShift | binary.LittleEndian.Uint64(random[:])>>(64-markShift)
}

func marked(process uint64) bool { return process>>markShift == processMark }

// writing is what a process knows of who else writes to a log.
type writing struct {
	newest atomic.Bool // blocks of the present version are written
	older  int64       // blocks of earlier versions that were read
	since  time.Time   // when the last of them was, or reading began
}

func (w *writing) version() byte {
	if w.newest.Load() {
		return version
	}
	return firstVersion
}

// note tells whether the process writes blocks of the present version from now on, because nobody
// is left who cannot read them.
func (w *writing) note(m *machine, now time.Time, settle time.Duration) (begins bool) {
	switch {
	case w.newest.Load():
	case m.version() == version:
		w.newest.Store(true)
	case m.older != w.older || w.since.IsZero():
		w.older, w.since = m.older, now
	case now.Sub(w.since) >= settle:
		w.newest.Store(true)
		return true
	}
	return false
}
