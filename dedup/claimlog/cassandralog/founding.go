package cassandralog

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/gocql/gocql"

	"github.com/kdedup/kdedup/dedup/cassandra"
	"github.com/kdedup/kdedup/internal/pause"
)

// founding is what a log is, as setup made it. It stands without a TTL in both tables. Where one of
// them lacks it, that table was truncated, or dropped and made again: there is no log then, and the
// next one has another ID, and so other partitions.
type founding struct {
	Version int    `json:"version"`
	ID      string `json:"id"`
	Shards  int    `json:"shards"`
}

const (
	foundingVersion = 1
	foundingKey     = "log"
)

// foundingPlace is where the table with the blocks has it: in no shard of any log.
func foundingPlace(group string) []any {
	return []any{group, gocql.UUID{}, -1, int64(-1), int64(0)}
}

func parseFounding(text []byte) (f founding, id gocql.UUID, err error) {
	if err := json.Unmarshal(text, &f); err != nil {
		return f, id, fmt.Errorf("%q tells nothing of a claim log: %w", text, err)
	}
	if id, err = gocql.ParseUUID(f.ID); err != nil {
		return f, id, fmt.Errorf("%q tells nothing of a claim log: %w", text, err)
	}
	if f.Version != foundingVersion || f.Shards < 1 {
		return f, id, fmt.Errorf("the claim log is of version %d with %d shards, and this program "+
			"knows version %d: upgrade it", f.Version, f.Shards, foundingVersion)
	}
	return f, id, nil
}

// settling is how long a founding may stand in one of the tables only while somebody writes it.
const settling = time.Second

const setupRemedy = "run: kdedup setup -c FILE"

var errMissing = errors.New("it does not exist, or a table of it was truncated")

// Missing reports whether an error says that a group has no log.
func Missing(err error) bool { return errors.Is(err, errMissing) }

func (l *Logs) missing(group string) error {
	return fmt.Errorf("claim log of %s in table %s.%s: %w; %s", group, l.o.Cassandra.Keyspace,
		l.o.Cassandra.Table, errMissing, setupRemedy)
}

// Found makes the log of a group, if it is missing or a table of it was lost, and tells what it
// did.
func (l *Logs) Found(
	ctx context.Context, group string, shards int, dryRun bool, say func(string),
) error {
	name := fmt.Sprintf("claim log of %s", group)
	if dryRun {
		say(fmt.Sprintf("would make the %s with %d shards, if it is missing", name, shards))
		return nil
	}
	session, err := l.connect(ctx)
	if err != nil {
		return err
	}
	r, s := &registry{l, group}, l.statements()
	const attempts = 10 // of several setups at the same time one wins
	made := false
	var before [2][]byte
	for range attempts {
		here, there, err := readFoundings(ctx, session, s, r)
		if err != nil {
			return err
		}
		if here != nil && bytes.Equal(here, there) {
			f, _, err := parseFounding(here)
			switch {
			case err != nil:
				return fmt.Errorf("%s: %w", name, err)
			case made:
				say(fmt.Sprintf("made the %s with %d shards", name, f.Shards))
			case f.Shards != shards:
				say(fmt.Sprintf("%s exists, with %d shards, not %d: that cannot be changed", name,
					f.Shards, shards))
			default:
				say(name + " exists")
			}
			return nil
		}
		now := [2][]byte{here, there}
		if there != nil && !slices.EqualFunc(now[:], before[:], bytes.Equal) {
			before = now // another setup may be between its two writes
			if !pause.For(ctx, settling/2+rand.N(settling)) {
				return context.Cause(ctx)
			}
			continue
		}
		id, err := gocql.RandomUUID()
		if err != nil {
			return err
		}
		text, err := json.Marshal(founding{foundingVersion, id.String(), shards})
		if err != nil {
			return err
		}
		if err := l.found(ctx, group, here, there, text); err != nil {
			return err
		}
		made = true
	}
	return fmt.Errorf("make the %s: others make it again and again; run setup once", name)
}

// found puts a new founding in the place of those that do not agree.
func (l *Logs) found(ctx context.Context, group string, here, there, text []byte) error {
	session, err := l.connect(ctx)
	if err != nil {
		return err
	}
	r, s := &registry{l, group}, l.statements()
	if there == nil {
		err = r.propose(ctx, foundingKey, text)
	} else {
		err = r.replace(ctx, foundingKey, there, text)
	}
	if err != nil {
		return err
	}
	if there, err = r.value(ctx, foundingKey); err != nil {
		return err
	}
	place := foundingPlace(group)
	if here == nil {
		err = session.Conditional(ctx, s.foundIfNone, append(place, there)...).Iter().Close()
	} else {
		values := append([]any{there}, place...)
		err = session.Conditional(ctx, s.foundIfAnother, append(values, here)...).Iter().Close()
	}
	if err != nil {
		return fmt.Errorf("make the claim log of %s: %w", group, err)
	}
	return nil
}

// readFoundings returns what the two tables have, or nil.
func readFoundings(
	ctx context.Context, session *cassandra.Session, s statements, r *registry,
) (here, there []byte, err error) {
	err = session.Serial(ctx, s.founding, foundingPlace(r.group)...).Scan(&here, nil)
	if errors.Is(err, gocql.ErrNotFound) {
		err = nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("read what the claim log of %s is: %w", r.group, err)
	}
	there, err = r.value(ctx, foundingKey)
	return here, there, err
}
