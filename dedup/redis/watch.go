package redis

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// watchEvery is short: a server that evicts deletes thousands of claims a second.
const watchEvery = 5 * time.Second

// stillFit asks every master what Open has asked.
func (s *Store) stillFit(ctx context.Context) (problem, err error) {
	servers, err := s.servers(ctx)
	s.note(servers)
	var problems []error
	for _, one := range servers {
		if err := one.problem(s.options.Mode); err != nil {
			problems = append(problems, fmt.Errorf("%s: %w", one.address, err))
		}
	}
	if len(problems) > 0 {
		return errors.Join(problems...), nil
	}
	return nil, err
}

// note tells what an operator has to know of servers and what no claim waits for.
func (s *Store) note(servers []server) {
	for _, one := range servers {
		last, known := s.seen[one.address]
		s.seen[one.address] = one
		if !one.appendOnly && (!known || last.appendOnly) {
			s.options.Logger.Warn(
				"the store forgets its claims when its server restarts: appendonly is off", "redis",
				one.address)
		}
		if known && one.runID == last.runID && one.evicted > last.evicted {
			s.options.Logger.Error("the server has evicted keys: of messages whose claims were "+
				"among them copies will pass", "redis", one.address,
				"keys", one.evicted-last.evicted)
		}
	}
}
