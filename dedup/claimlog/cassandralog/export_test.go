package cassandralog

import "time"

// SliceBlocks are the places of a slice.
const SliceBlocks = sliceBlocks

// WithClock sets the clock of a process.
func WithClock(o Options, now func() time.Time) Options {
	o.now = now
	return o
}
