package cassandra

import (
	"context"
	"errors"
	"slices"
	"time"
)

// watchEvery is the pause between two looks at what a cluster's decisions rest on.
const watchEvery = 30 * time.Second

// stillFit asks what Open has asked: a data centre may have been added, a table moved to Accord.
func (s *Store) stillFit(ctx context.Context) (problem, err error) {
	problem, err = s.decidesApart(ctx)
	s.mu.Lock()
	tables := slices.Clone(s.decided)
	s.mu.Unlock()
	for _, table := range tables {
		if err != nil {
			break
		}
		var under error
		under, err = s.underAccord(ctx, table)
		problem = errors.Join(problem, under)
	}
	return problem, err
}
