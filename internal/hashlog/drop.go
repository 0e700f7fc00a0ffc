package hashlog

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
)

// Drop deletes the segments of which every record has ended, and returns how many. Until then, Get
// finds what ended.
func (l *Log) Drop(ctx context.Context, now int64) (segments int, err error) {
	if err := l.Err(); err != nil {
		return 0, err
	}
	if err := l.turnIfEnded(ctx, now); err != nil {
		return 0, fmt.Errorf("drop segments: %w", err)
	}
	l.tending.Lock()
	defer l.tending.Unlock()
	ended := l.takeEnded(now)
	if len(ended) == 0 {
		return 0, nil
	}
	if err := l.saveManifest(); err != nil {
		return 0, l.fail(fmt.Errorf("drop segments: %w", err))
	}
	for _, s := range ended {
		err = errors.Join(err, s.read.Close(), l.o.Disk.Remove(l.path(segmentName(s.number))))
	}
	signal(l.indexed) // they are still in indexes
	if err != nil {
		return len(ended), fmt.Errorf("drop segments: %w", err)
	}
	return len(ended), nil
}

// turnIfEnded lets also the segment go that is appended to.
func (l *Log) turnIfEnded(ctx context.Context, now int64) error {
	if err := l.hold(ctx); err != nil {
		return err
	}
	defer l.letGo()
	if l.active.size.Load() == int64(len(segmentMagic)) || l.active.ends.Load() > now {
		return nil
	}
	return l.turn(ctx)
}

// takeEnded hides segments. Those without an index stay a little longer.
func (l *Log) takeEnded(now int64) (ended []*segment) {
	l.mu.Lock()
	defer l.mu.Unlock()
	spared := map[uint32]bool{l.active.number: true}
	for _, f := range l.full {
		spared[f.segment.number] = true
	}
	for number, s := range l.segments {
		if s.ends.Load() <= now && !spared[number] {
			ended = append(ended, s)
			delete(l.segments, number)
		}
	}
	slices.SortFunc(ended, func(a, b *segment) int { return cmp.Compare(a.number, b.number) })
	return ended
}
