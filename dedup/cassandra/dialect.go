package cassandra

import (
	"context"
	"fmt"

	"github.com/gocql/gocql"
)

// levels are the consistency levels beyond that of the commit.
type levels struct {
	paxos gocql.SerialConsistency // of conditional statements; 0: it is not sent
	// reads with it see every decided claim, and complete one that is in flight
	read gocql.Consistency
}

func (o Options) levels() (l levels, err error) {
	if err := l.paxos.UnmarshalText([]byte(o.SerialConsistency)); err != nil {
		return l, fmt.Errorf("serial_consistency: %w", err)
	}
	l.read = gocql.Consistency(l.paxos)
	return l, nil
}

// conditional is a statement with an IF. No other statement carries a level for the Paxos round.
func (s *Store) conditional(ctx context.Context, statement string, values ...any) *gocql.Query {
	return s.session.Query(statement, values...).WithContext(ctx).SerialConsistency(s.levels.paxos)
}

// amazonKeyspaces is how Amazon Keyspaces names its cluster.
const amazonKeyspaces = "Amazon Keyspaces"

// adapt asks the server what it is. Amazon Keyspaces takes no conditions in batches and knows no
// serial levels: there each claim is a statement of its own, and LOCAL_QUORUM reads see what was
// written before. Others that are compatible need nothing, or are told from Cassandra by no name:
// the self-test finds what they cannot do.
func (s *Store) adapt(ctx context.Context) error {
	var name string
	err := s.session.Query("SELECT cluster_name FROM system.local").WithContext(ctx).Scan(&name)
	if err != nil {
		return fmt.Errorf("read the cluster's name: %w", err)
	}
	if name != amazonKeyspaces {
		return nil
	}
	s.options.Logger.Info("the store is Amazon Keyspaces: one conditional insert for each claim, " +
		"reads with LOCAL_QUORUM")
	s.options.BatchClaims = 1
	s.levels = levels{read: gocql.LocalQuorum}
	return nil
}
