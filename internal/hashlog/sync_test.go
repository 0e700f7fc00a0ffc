package hashlog

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/kdedup/kdedup/internal/testkit"
)

// What failed once is not tried again: the system may forget what it could not write, and call the
// next sync a success.
func TestAfterAFailureNothingIsAppended(t *testing.T) {
	for name, fail := range map[string]func(*testkit.Disk, bool){
		"a full disk": func(d *testkit.Disk, on bool) {
			d.Full.Store(on)
		}, "a failed sync": func(d *testkit.Disk, on bool) { d.BadSync.Store(on) },
	} {
		t.Run(name, func(t *testing.T) {
			d := testkit.NewDisk()
			dir := t.TempDir()
			l := open(t, dir, Options{SegmentBytes: small, Disk: d})
			put(t, l, 0, 20, 10)
			fail(d, true)
			var b Batch
			b.Put(keyOf(20), []byte("lost"), 10)
			mark, err := l.Append(t.Context(), &b)
			if err == nil {
				err = l.Sync(t.Context(), mark)
			}
			fail(d, false)
			_, again := l.Append(t.Context(), &b)
			if err == nil || again == nil || l.Err() == nil || l.Sync(t.Context(), mark) == nil {
				t.Errorf("got %v, then %v, and Err is %v", err, again, l.Err())
			}
			if l.Close() == nil {
				t.Error("it was closed as if nothing had happened")
			}
			l = open(t, dir, Options{SegmentBytes: small})
			defer closeLog(t, l)
			wantAll(t, l, 0, 20, 10)
		})
	}
}

func TestWhoAppendsMeanwhileSharesTheNextSync(t *testing.T) {
	d := testkit.NewDisk()
	l := open(t, t.TempDir(), Options{Disk: d})
	defer closeLog(t, l)
	put(t, l, 0, 1, 10)
	d.Hold()
	release := sync.OnceFunc(d.Release)
	defer release() // also before the log is closed
	const callers = 20
	done := make(chan error, callers)
	add := func(i int) {
		var b Batch
		b.Put(keyOf(i), []byte("value"), 10)
		mark, err := l.Append(t.Context(), &b)
		if err != nil {
			t.Error(err)
		}
		go func() { done <- l.Sync(t.Context(), mark) }()
	}
	add(1)
	select {
	case <-d.Syncing:
	case err := <-done:
		t.Fatalf("answered without a sync: %v", err)
	}
	for i := range callers - 1 {
		add(2 + i)
	}
	select {
	case <-done:
		t.Error("a sync ended that was held up")
	default:
	}
	release()
	for range callers {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	if n := len(d.Syncing); n != 1 {
		t.Errorf("%d syncs after the first one, want 1 for all", n)
	}
}

func TestSyncEndsWithItsContext(t *testing.T) {
	d := testkit.NewDisk()
	l := open(t, t.TempDir(), Options{Disk: d})
	d.Hold()
	var b Batch
	b.Put(keyOf(1), []byte("value"), 10)
	mark, err := l.Append(t.Context(), &b)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := l.Sync(ctx, mark); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	d.Release()
	closeLog(t, l)
}
