package cassandralog

import (
	"context"
	"errors"
	"fmt"
)

// Remove takes the log of a group away, of which nobody makes use any more. Settings that were
// registered stay.
func (l *Logs) Remove(ctx context.Context, group string) error {
	log, err := l.Open(ctx, group)
	if Missing(err) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := log.(*tableLog).remove(ctx); err != nil {
		return fmt.Errorf("remove the claim log of %s: %w", group, err)
	}
	return log.Close()
}

// remove takes the founding away first: without it nobody reads the log.
func (t *tableLog) remove(ctx context.Context) error {
	s := t.statements
	err := t.session.Conditional(ctx, s.unfound, foundingPlace(t.group)...).Iter().Close()
	if err != nil {
		return err
	}
	if err := t.registry.remove(ctx, foundingKey); err != nil {
		return err
	}
	var problems []error
	for _, shard := range t.shards {
		newest, _, err := shard.pointer(ctx)
		if err != nil {
			return err
		}
		for slice := range newest + 1 {
			problems = append(problems,
				t.session.Read(ctx, s.deleteSlice, shard.partition(slice)...).Exec())
		}
		problems = append(problems, t.registry.remove(ctx, shard.pointerKey()))
	}
	return errors.Join(problems...)
}
