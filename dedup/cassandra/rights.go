package cassandra

import (
	"context"
	"errors"
	"fmt"

	"github.com/gocql/gocql"
)

// CheckRights returns an error for each table on which the user lacks a right that claims need. It
// reads and deletes, on the condition that it exists, a row that never exists. Errors of another
// kind are left to those who meet them next and repeat.
func (s *Store) CheckRights(ctx context.Context) error {
	var problems []error
	for _, c := range []struct{ table, key string }{
		{s.options.qualifiedTable(),
			"consumer_group = '' AND topic = '' AND bucket = -1 AND message_id = 0x"},
		{s.options.scopesTable(), "consumer_group = '' AND topic = ''"},
	} {
		said := ""
		for _, query := range []*gocql.Query{
			s.session.Query("SELECT topic FROM " + c.table + " WHERE " + c.key).WithContext(ctx),
			s.conditional(ctx, "DELETE FROM "+c.table+" WHERE "+c.key+" IF EXISTS"),
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
