package embedded

import (
	"errors"
	"time"

	"github.com/cockroachdb/pebble/v2"
)

// reader looks up keys in the state of the database at the time when it was made. Pebble's own Get
// leaves out the Bloom filters of the lowest level, where most keys are: it takes for granted that
// they exist. Most IDs are new.
type reader struct{ iter *pebble.Iterator }

func (s *Store) newReader() (reader, error) {
	iter, err := s.db.NewIter(&pebble.IterOptions{
		LowerBound: []byte{claimPrefix}, UpperBound: []byte{claimPrefix + 1}, UseL6Filters: true,
	})
	return reader{iter}, err
}

// get returns the claim that holds a key, unless there is none or it has ended.
func (r reader) get(key []byte, now time.Time) (record claimRecord, found bool, err error) {
	if !r.iter.SeekPrefixGE(key) {
		return record, false, r.iter.Error()
	}
	value, err := r.iter.ValueAndErr()
	if err != nil {
		return record, false, err
	}
	record, err = parseRecord(value)
	return record, err == nil && now.UnixMilli() < record.expiresAt, err
}

// Close ends the use of that state, whose files are kept until then.
func (r reader) Close() error { return r.iter.Close() }

// get looks up one key.
func (s *Store) get(key []byte, now time.Time) (record claimRecord, found bool, err error) {
	r, err := s.newReader()
	if err != nil {
		return record, false, err
	}
	record, found, err = r.get(key, now)
	return record, found, errors.Join(err, r.Close())
}
