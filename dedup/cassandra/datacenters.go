package cassandra

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/gocql/gocql"
)

// checkDataCentres refuses a cluster of several data centres whose nodes are asked in turn with
// LOCAL_SERIAL: each centre would decide for itself, and a message be first in each.
func (s *Store) checkDataCentres(ctx context.Context) error {
	problem, err := s.decidesApart(ctx)
	return errors.Join(problem, err)
}

func (s *Store) decidesApart(ctx context.Context) (problem, err error) {
	if s.options.LocalDC != "" || s.levels.paxos != gocql.LocalSerial {
		return nil, nil
	}
	centres, err := dataCentres(ctx, s.session)
	if err != nil || len(centres) < 2 {
		return nil, err
	}
	return fmt.Errorf("the cluster has the data centres %s, and with LOCAL_SERIAL each "+
		"decides for itself: "+
		"set store.cassandra.local_dc, the same for all processes, or serial_consistency to "+
		"SERIAL", strings.Join(centres, ", ")), nil
}

// explainLocalDC tells whether no connection was made because local_dc is the name of no data
// centre, or of none in which a host lies.
func (o Options) explainLocalDC(ctx context.Context, err error) error {
	anywhere := o
	anywhere.LocalDC = ""
	if o.LocalDC == "" {
		return err
	}
	session, connectErr := anywhere.connect("")
	if connectErr != nil {
		return err
	}
	defer session.Close()
	centres, lookErr := dataCentres(ctx, session)
	switch {
	case lookErr != nil:
		return err
	case !slices.Contains(centres, o.LocalDC):
		// no outage
		return fmt.Errorf(
			"%v: no node is in the data centre %q; set store.cassandra.local_dc to one of %s",
			err, o.LocalDC, strings.Join(centres, ", "))
	}
	return fmt.Errorf("%w; store.cassandra.hosts must name nodes of the data centre %q that answer",
		err, o.LocalDC)
}

// dataCentres asks the node that answers for its own and those of the others.
func dataCentres(ctx context.Context, session *gocql.Session) ([]string, error) {
	var centres []string
	for _, table := range []string{"system.local", "system.peers"} {
		iter := session.Query("SELECT data_center FROM " + table).WithContext(ctx).Consistency(
			gocql.LocalOne).Iter()
		for centre := ""; iter.Scan(&centre); {
			centres = append(centres, centre)
		}
		if err := iter.Close(); err != nil {
			return nil, fmt.Errorf("read the names of the data centres: %w", err)
		}
	}
	slices.Sort(centres)
	return slices.Compact(centres), nil
}
