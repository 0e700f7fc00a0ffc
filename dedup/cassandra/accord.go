package cassandra

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/gocql/gocql"
)

// checkAccord refuses a table whose conditional writes go through Accord (CEP-15), as
// Cassandra 6.0 can have it: a conditional insert with a TTL is answered as applied there, each
// time, and nothing is kept. So it was with 6.0-alpha2, in modes full and mixed_reads. No table of
// the schema tells the mode. The watch looks at the table from then on, too.
func (s *Store) checkAccord(ctx context.Context, table string) error {
	s.mu.Lock()
	if !slices.Contains(s.decided, table) {
		s.decided = append(s.decided, table)
	}
	s.mu.Unlock()
	problem, err := s.underAccord(ctx, table)
	return errors.Join(problem, err)
}

func (s *Store) underAccord(ctx context.Context, table string) (problem, err error) {
	version, err := releaseVersion(ctx, s.session)
	if err != nil {
		return nil, err
	}
	if major, _, _ := strings.Cut(version, "."); !atLeast(major, accordSince) {
		return nil, nil
	}
	var keyspace, kind, name, statement string
	err = s.session.Query("DESCRIBE TABLE "+s.options.Quoted(table)).WithContext(
		ctx).Consistency(gocql.LocalOne).
		Scan(&keyspace, &kind, &name, &statement)
	if err != nil {
		return nil, fmt.Errorf("describe table %s: %w", s.options.shown(table), err)
	}
	if mode := transactionalMode(statement); mode != "off" {
		return fmt.Errorf("table %s has transactional_mode '%s': Accord keeps no claim that has "+
			"a TTL, and every copy would pass; "+
			"name another table in store.cassandra.table, which kdedup setup creates with "+
			"transactional_mode = 'off', "+
			"or alter this one, and finish its migration", s.options.shown(table), mode), nil
	}
	return nil, nil
}

// accordSince is the major version of Cassandra that has it.
const accordSince = 6

var transactionalModes = regexp.MustCompile(`transactional_mode = '([a-z_]+)'`)

// transactionalMode finds the mode in a CREATE TABLE.
func transactionalMode(statement string) string {
	found := transactionalModes.FindStringSubmatch(statement)
	if found == nil {
		return "off"
	}
	return found[1]
}
