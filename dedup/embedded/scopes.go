package embedded

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"github.com/kdedup/kdedup/dedup"
)

type scopeName struct{ group, name string }

// scopeRecord is what is stored about a scope. Its number stands for it in the keys of its claims.
type scopeRecord struct {
	ID         uint32 `json:"id"`
	Registered bool   `json:"registered"`
	Buckets    int    `json:"buckets,omitempty"`
	Extractor  string `json:"extractor,omitempty"`
}

func scopeKey(n scopeName) []byte {
	key := []byte{scopePrefix}
	key = binary.AppendUvarint(key, uint64(len(n.group)))
	key = append(key, n.group...)
	return append(key, n.name...)
}

func parseScopeKey(key []byte) (scopeName, error) {
	n, used := binary.Uvarint(key[1:])
	rest := key[1:]
	if used <= 0 || uint64(len(rest)-used) < n {
		return scopeName{}, fmt.Errorf("the key of a scope is broken: %x", key)
	}
	rest = rest[used:]
	return scopeName{string(rest[:n]), string(rest[n:])}, nil
}

// loadScopes reads all scopes; there are as many as pipelines ever used the directory.
func (s *Store) loadScopes() error {
	iter, err := s.db.NewIter(&pebble.IterOptions{LowerBound: []byte{scopePrefix}, UpperBound: []byte{scopePrefix + 1}})
	if err != nil {
		return fmt.Errorf("read scopes: %w", err)
	}
	for iter.First(); iter.Valid(); iter.Next() {
		var record scopeRecord
		name, keyErr := parseScopeKey(iter.Key())
		if err := errors.Join(keyErr, json.Unmarshal(iter.Value(), &record)); err != nil {
			return fmt.Errorf("read scopes: %w", errors.Join(err, iter.Close()))
		}
		s.scopes[name] = record
	}
	if err := iter.Close(); err != nil {
		return fmt.Errorf("read scopes: %w", err)
	}
	return nil
}

func nameOf(scope dedup.Scope) scopeName { return scopeName{scope.ConsumerGroup, scope.Name} }

func (s *Store) scope(scope dedup.Scope) (record scopeRecord, known bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	record, known = s.scopes[nameOf(scope)]
	return record, known
}

// ensureScope returns the record of a scope and makes one if it is new.
func (s *Store) ensureScope(scope dedup.Scope) (scopeRecord, error) {
	if record, known := s.scope(scope); known {
		return record, nil
	}
	return s.updateScope(scope, func(scopeRecord) scopeRecord { return scopeRecord{} })
}

// updateScope stores what change makes of the scope's record, unless that is the same.
func (s *Store) updateScope(scope dedup.Scope, change func(scopeRecord) scopeRecord) (scopeRecord, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	name := nameOf(scope)
	old, known := s.scopes[name]
	record := change(old)
	record.ID = old.ID
	if known && record == old {
		return record, nil
	}
	if !known {
		record.ID = uint32(len(s.scopes)) + 1
	}
	value, err := json.Marshal(record)
	if err == nil {
		err = s.db.Set(scopeKey(name), value, pebble.Sync)
	}
	if err == nil {
		err = s.health.err()
	}
	if err != nil {
		return scopeRecord{}, fmt.Errorf("write scope %s/%s: %w", name.group, name.name, err)
	}
	s.scopes[name] = record
	return record, nil
}

// Register implements dedup.Store.
func (s *Store) Register(ctx context.Context, scope dedup.Scope) error {
	if err := s.usable(ctx); err != nil {
		return fmt.Errorf("register scope: embedded: %w", err)
	}
	record, err := s.updateScope(scope, func(old scopeRecord) scopeRecord {
		if old.Registered {
			return old
		}
		return scopeRecord{Registered: true, Buckets: scope.Buckets, Extractor: scope.Extractor}
	})
	if err != nil {
		return fmt.Errorf("register scope: embedded: %w", err)
	}
	return dedup.CompareScopes(scope, dedup.Scope{Buckets: record.Buckets, Extractor: record.Extractor})
}

// Registered implements dedup.Store.
func (s *Store) Registered(ctx context.Context, scope dedup.Scope) (registered dedup.Scope, found bool, err error) {
	if err := s.usable(ctx); err != nil {
		return dedup.Scope{}, false, fmt.Errorf("read scope: embedded: %w", err)
	}
	record, known := s.scope(scope)
	if !known || !record.Registered {
		return dedup.Scope{}, false, nil
	}
	return dedup.Scope{
		ConsumerGroup: scope.ConsumerGroup, Name: scope.Name, Buckets: record.Buckets, Extractor: record.Extractor,
	}, true, nil
}

// Forget implements dedup.Store. The scope keeps its number, which no other scope may get: the lists
// of its claims stay until they end, and the sweep would take the claims of another for these.
func (s *Store) Forget(ctx context.Context, scope dedup.Scope) error {
	if err := s.usable(ctx); err != nil {
		return fmt.Errorf("forget scope: embedded: %w", err)
	}
	record, known := s.scope(scope)
	if !known {
		return nil
	}
	if err := s.db.DeleteRange(claimKey(nil, record.ID, ""), claimKey(nil, record.ID+1, ""), pebble.Sync); err != nil {
		return fmt.Errorf("forget scope: embedded: %w", err)
	}
	_, err := s.updateScope(scope, func(scopeRecord) scopeRecord { return scopeRecord{} })
	if err != nil {
		return fmt.Errorf("forget scope: embedded: %w", err)
	}
	return s.health.err()
}
