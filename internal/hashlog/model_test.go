package hashlog

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
)

// TestModel compares a log with a map, through random work, crashes and new starts.
func TestModel(t *testing.T) {
	for seed := range uint64(4) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { newModel(t, seed).run(400) })
	}
}

type model struct {
	t      *testing.T
	random *rand.Rand
	dir    string
	log    *Log
	now    int64
	want   map[int]modelRecord
}

type modelRecord struct {
	value string
	ends  int64
}

func newModel(t *testing.T, seed uint64) *model {
	m := &model{t: t, random: rand.New(rand.NewPCG(seed, 1)), dir: t.TempDir(),
		want: map[int]modelRecord{}}
	m.log = open(t, m.dir, m.options())
	return m
}

// options change now and then: an earlier version has left plain segments.
func (m *model) options() Options {
	return Options{SegmentBytes: small, Disk: unsynced{}, Shape: anyShape(m.random)}
}

func (m *model) run(steps int) {
	for range steps {
		switch n := m.random.IntN(100); {
		case n < 80:
			m.append()
		case n < 85:
			m.now += m.random.Int64N(20)
		case n < 94:
			if _, err := m.log.Drop(m.t.Context(), m.now); err != nil {
				m.t.Fatal(err)
			}
		case n < 97:
			m.check()
		case n < 99:
			m.reopen()
		default:
			m.crash()
		}
	}
	m.check()
	closeLog(m.t, m.log)
}

func (m *model) append() {
	var b Batch
	for range 1 + m.random.IntN(20) {
		key, ends := m.random.IntN(3000), m.now+100
		if m.random.IntN(3) == 0 {
			ends = m.now + m.random.Int64N(200)
		}
		if old, found := m.want[key]; found && m.random.IntN(4) == 0 {
			b.Delete(mixedKey(key), old.ends)
			delete(m.want, key)
			continue
		}
		ends = max(ends, m.want[key].ends)
		value := fmt.Sprintf("%d %s", m.random.Int(), strings.Repeat("x", m.random.IntN(100)))
		value += strings.Repeat(string("abc"[m.random.IntN(3)]), m.random.IntN(2)*12)
		b.Put(mixedKey(key), []byte(value), ends)
		m.want[key] = modelRecord{value, ends}
	}
	appendAndSync(m.t, m.log, &b)
}

func (m *model) check() {
	m.t.Helper()
	r := m.log.NewReader()
	for key := range 3000 {
		want := m.want[key]
		value, ends, err := r.Get(mixedKey(key))
		ended := want.ends <= m.now && (value == nil || ends <= m.now)
		if err != nil || !ended && (string(value) != want.value || ends != want.ends) {
			m.t.Fatalf("key %d has %q until %d, %v; want %+v, now %d", key, value, ends, err, want,
				m.now)
		}
	}
	m.checkEach()
}

// checkEach wants every record that has not ended, once.
func (m *model) checkEach() {
	m.t.Helper()
	left := map[string]modelRecord{}
	for key, record := range m.want {
		if record.ends > m.now {
			left[string(mixedKey(key))] = record
		}
	}
	err := m.log.Each(m.t.Context(), m.now, func(key, value []byte, ends int64) error {
		if want, found := left[string(key)]; !found || want != (modelRecord{string(value), ends}) {
			return fmt.Errorf("key %s has %q until %d, want %+v, found %t", key, value, ends, want,
				found)
		}
		delete(left, string(key))
		return nil
	})
	if err != nil || len(left) > 0 {
		m.t.Fatalf("%d records are not shown: %v", len(left), err)
	}
}

func (m *model) reopen() {
	closeLog(m.t, m.log)
	m.log = open(m.t, m.dir, m.options())
}

// crash goes on with a copy of the files as they were, with something half-written at the end.
func (m *model) crash() {
	settle(m.t, m.log)
	dir := m.t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(m.dir)); err != nil {
		m.t.Fatal(err)
	}
	closeLog(m.t, m.log)
	names := segments(m.t, dir)
	last, err := os.OpenFile(names[len(names)-1], os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		m.t.Fatal(err)
	}
	torn := appendRecord(nil, keyOf(1), []byte("never synced"), 1<<40)
	_, err = last.Write(torn[:m.random.IntN(len(torn))])
	if err := errors.Join(err, last.Close()); err != nil {
		m.t.Fatal(err)
	}
	m.dir = dir
	m.log = open(m.t, dir, m.options())
}
