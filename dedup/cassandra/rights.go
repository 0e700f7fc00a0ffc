package cassandra

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/gocql/gocql"
)

// CheckRights returns an error for each table on which the user lacks a right that claims need. It
// reads and deletes, on the condition that it exists, a row that never exists. Errors of another
// kind are left to those who meet them next and repeat.
func (s *Store) CheckRights(ctx context.Context) error {
	return s.checkRights(ctx, map[string]string{
		s.options.qualifiedTable(): "consumer_group = '' AND topic = '' AND bucket = -1 AND " +
			"message_id = 0x",
		s.options.scopesTable(): "consumer_group = '' AND topic = ''",
	})
}

// checkRights is CheckRights for tables, and a key in each that no row has.
func (s *Store) checkRights(ctx context.Context, tables map[string]string) error {
	var problems []error
	for _, table := range slices.Sorted(maps.Keys(tables)) {
		said, key := "", tables[table]
		for _, query := range []*gocql.Query{
			s.session.Query("SELECT consumer_group FROM " + table + " WHERE " + key).
				WithContext(ctx),
			s.conditional(ctx, "DELETE FROM "+table+" WHERE "+key+" IF EXISTS"),
		} {
			err := query.Iter().Close()
			// A condition needs the right to read, too: then both statements say the same.
			if isUnauthorized(err) && err.Error() != said {
				said = err.Error()
				problems = append(problems,
					fmt.Errorf("store.cassandra: %w; docs/security.md lists the grants", err))
			}
		}
	}
	return errors.Join(problems...)
}

func isUnauthorized(err error) bool {
	var answer gocql.RequestError
	return errors.As(err, &answer) && answer.Code() == gocql.ErrCodeUnauthorized
}
