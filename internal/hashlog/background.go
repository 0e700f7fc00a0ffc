package hashlog

import (
	"context"
	"fmt"
	"slices"
)

// Tend makes the indexes that full segments wait for, and merges. The log does it by itself, unless
// Options.ManualMaintenance says otherwise; then Append waits while two segments have no index.
func (l *Log) Tend(ctx context.Context) error {
	err := l.indexFull(ctx)
	if err == nil {
		err = l.merge(ctx)
	}
	if err != nil && ctx.Err() == nil {
		return l.fail(fmt.Errorf("index segments: %w", err))
	}
	return err
}

// whenever works at each signal until ctx ends.
func (l *Log) whenever(
	ctx context.Context, signals <-chan struct{}, work func(context.Context) error,
) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-signals:
		}
		if err := work(ctx); err != nil && ctx.Err() == nil {
			l.fail(fmt.Errorf("index segments: %w", err))
		}
	}
}

// indexFull writes the indexes of the segments that became full.
func (l *Log) indexFull(ctx context.Context) error {
	for ctx.Err() == nil {
		l.mu.RLock()
		waiting := l.full
		l.mu.RUnlock()
		if len(waiting) == 0 {
			return nil
		}
		x, err := l.writeIndex(waiting[0].segment.number, waiting[0].table)
		if err != nil {
			return err
		}
		l.mu.Lock()
		l.full = slices.Delete(slices.Clone(l.full), 0, 1)
		l.indexes = append(slices.Clone(l.indexes), x)
		l.mu.Unlock()
		if err := l.saveManifest(); err != nil {
			return err
		}
		<-l.unindexed
		signal(l.indexed)
	}
	return nil
}

func (l *Log) writeIndex(segment uint32, t *table) (*index, error) {
	entries := t.sorted()
	return l.makeIndex(segment, segment, len(entries), func(w *indexWriter) error {
		for _, e := range entries {
			if err := w.add(e); err != nil {
				return err
			}
		}
		return nil
	})
}
