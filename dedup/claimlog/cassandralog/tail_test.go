package cassandralog_test

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/gocql/gocql"

	"github.com/kdedup/kdedup/dedup/cassandra"
	"github.com/kdedup/kdedup/dedup/claimlog"
	"github.com/kdedup/kdedup/internal/testkit"
)

const group = "orders-dedup"

// tail is a process that reads a log of one shard.
type tail struct {
	claimlog.Log
	t    *testing.T
	stop context.CancelFunc
	all  sync.WaitGroup

	mu      sync.Mutex
	entries []claimlog.Entry
	err     error // of Read
	ended   bool
}

// follow opens the log and reads it from a position; nil: from its beginning. It stops with the
// test.
func follow(t *testing.T, logs claimlog.Opener, from *claimlog.Position) *tail {
	t.Helper()
	log, err := logs.Open(t.Context(), group)
	if err != nil {
		t.Fatal(err)
	}
	position := claimlog.Position{Epoch: -1}
	if from != nil {
		position = *from
	}
	spans, err := log.Spans(t.Context(), []claimlog.Position{position})
	if err != nil {
		t.Fatal(err)
	}
	if from == nil {
		position.Next = spans[0].First
	}
	ctx, cancel := context.WithCancel(t.Context())
	f := &tail{Log: log, t: t, stop: cancel}
	f.all.Go(func() {
		err := log.Read(ctx, []claimlog.Position{position}, f.apply)
		if err := log.Close(); err != nil {
			t.Error(err)
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		f.err, f.ended = err, true
	})
	t.Cleanup(f.close)
	return f
}

func (f *tail) close() {
	f.stop()
	f.all.Wait()
}

func (f *tail) apply(entries []claimlog.Entry) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, e := range entries {
		e.Block = bytes.Clone(e.Block)
		f.entries = append(f.entries, e)
	}
	return nil
}

// append puts a block behind all others, and returns when the log says so.
func (f *tail) append(text string, keep time.Duration) error {
	done := make(chan error, 1)
	f.Append(0, []byte(text), keep, func(err error) { done <- err })
	select {
	case err := <-done:
		return err
	case <-time.After(time.Minute):
		return fmt.Errorf("%s: no answer", text)
	}
}

func (f *tail) mustAppend(keep time.Duration, texts ...string) {
	f.t.Helper()
	for _, text := range texts {
		if err := f.append(text, keep); err != nil {
			f.t.Fatal(text, err)
		}
	}
}

// read is what was read so far, without the blocks that fill a slice.
func (f *tail) read() (texts []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, e := range f.entries {
		if len(e.Block) > 0 {
			texts = append(texts, string(e.Block))
		}
	}
	return texts
}

func (f *tail) wantRead(texts ...string) {
	f.t.Helper()
	defer func() {
		if f.t.Failed() {
			f.t.Logf("read %q (%v)", f.read(), f.why())
		}
	}()
	testkit.Eventually(f.t, 30*time.Second, fmt.Sprintf("the blocks %q", texts), func() bool {
		return slices.Equal(f.read(), texts)
	})
}

// places are those of what was read; they follow on each other.
func (f *tail) places() (first, end int64) {
	f.t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	for i, e := range f.entries {
		if e.At != f.entries[0].At+int64(i) {
			f.t.Fatalf("place %d comes behind %d", e.At, f.entries[i-1].At)
		}
	}
	if len(f.entries) == 0 {
		return 0, 0
	}
	return f.entries[0].At, f.entries[0].At + int64(len(f.entries))
}

func (f *tail) why() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.err
}

// wantEnd waits until the reading has ended, and returns why.
func (f *tail) wantEnd() error {
	f.t.Helper()
	testkit.Eventually(f.t, 30*time.Second, "the reading ends", func() bool {
		f.mu.Lock()
		defer f.mu.Unlock()
		return f.ended
	})
	return f.why()
}

// cluster runs statements as an operator does.
func cluster(t *testing.T, o cassandra.Options) *gocql.Session {
	t.Helper()
	c := gocql.NewCluster(o.Hosts...)
	c.Keyspace, c.Timeout, c.ConnectTimeout = o.Keyspace, time.Minute, time.Minute
	session, err := c.CreateSession()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(session.Close)
	return session
}

func mustRun(t *testing.T, s *gocql.Session, statement string, values ...any) {
	t.Helper()
	if err := s.Query(statement, values...).WithContext(t.Context()).Exec(); err != nil {
		t.Fatal(statement, err)
	}
}

// blocks counts those that can be read of the first slices.
func blocks(t *testing.T, s *gocql.Session, id string) (n int) {
	t.Helper()
	uuid, err := gocql.ParseUUID(id)
	if err != nil {
		t.Fatal(err)
	}
	for slice := range int64(3) {
		iter := s.Query("SELECT seq FROM claim_log WHERE consumer_group = ? AND log = ? AND "+
			"shard = 0 AND slice = ?", group, uuid, slice).WithContext(t.Context()).Iter()
		n += iter.NumRows()
		if err := iter.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return n
}

// founded has the log of the group made, with one shard.
func founded(t *testing.T, o cassandra.Options) *made {
	t.Helper()
	m := newMade(t, o, 1)
	m.ready(group)
	return m
}
