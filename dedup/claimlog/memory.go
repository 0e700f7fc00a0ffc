package claimlog

import (
	"context"
	"sync"
)

// memoryIndex is an index that ends with the process.
type memoryIndex struct {
	mu      sync.Mutex // a drop may run beside the rest
	claims  map[string]ending
	pending []pendingClaim
	flushes uint64
}

type ending struct {
	value string
	ends  int64
}

type pendingClaim struct {
	key, value string // no value: removed
	ends       int64
}

func newMemoryIndex() *memoryIndex { return &memoryIndex{claims: make(map[string]ending)} }

func (m *memoryIndex) get(key []byte, _ uint64) (value []byte, ends int64, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	found, ok := m.claims[string(key)]
	if !ok {
		return nil, 0, nil
	}
	return []byte(found.value), found.ends, nil
}

func (m *memoryIndex) end() uint64 { return m.flushes + 1 }

func (m *memoryIndex) put(key, value []byte, ends int64) {
	m.pending = append(m.pending, pendingClaim{string(key), string(value), ends})
}

func (m *memoryIndex) remove(key []byte, ends int64) { m.put(key, nil, ends) }

func (m *memoryIndex) flush(context.Context) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, p := range m.pending {
		if p.value == "" {
			delete(m.claims, p.key)
		} else {
			m.claims[p.key] = ending{p.value, p.ends}
		}
	}
	m.pending = m.pending[:0]
	m.flushes++
	return nil
}

func (m *memoryIndex) drop(_ context.Context, now int64) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for key, c := range m.claims {
		if c.ends <= now {
			delete(m.claims, key)
		}
	}
	return nil
}

// each has a list of all: who is shown it may wait for what is flushed meanwhile.
func (m *memoryIndex) each(
	ctx context.Context, after int64, show func(key, value []byte, ends int64) error,
) error {
	m.mu.Lock()
	var all []pendingClaim
	for key, c := range m.claims {
		if c.ends > after {
			all = append(all, pendingClaim{key, c.value, c.ends})
		}
	}
	m.mu.Unlock()
	for _, c := range all {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err := show([]byte(c.key), []byte(c.value), c.ends); err != nil {
			return err
		}
	}
	return nil
}

func (m *memoryIndex) latest() (latest int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, c := range m.claims {
		latest = max(latest, c.ends)
	}
	return latest
}

func (m *memoryIndex) saved() progress                            { return progress{} }
func (m *memoryIndex) mark() mark                                 { return mark{} }
func (m *memoryIndex) save(context.Context, mark, progress) error { return nil }

func (m *memoryIndex) reset() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	clear(m.claims)
	m.pending = nil
	return nil
}

func (m *memoryIndex) size() (claims int, bytes int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.claims), 0
}

func (m *memoryIndex) close() error { return nil }
