package embedded

import (
	"errors"
	"io/fs"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/kdedup/kdedup/dedup"
)

// Calls of one claim each are what a quiet topic makes: the pauses of a sweep must not be per call.
func TestASweepTakesManySmallCallsTogether(t *testing.T) {
	const calls = 3000
	var c clock
	c.unix.Store(1_000_000)
	s := mustOpen(t, Options{Path: "data", FS: vfs.NewMem(), SweepInterval: -1, Now: c.now})
	defer s.Close()
	for i := range calls {
		mustClaim(t, s, claims(i, 1))
	}
	c.unix.Add(3601)
	if lists, expired, err := s.nextEnded([]byte{endPrefix}, s.now()); len(lists) != sweepBatch || len(expired) != sweepBatch || err != nil {
		t.Errorf("%d lists of %d claims in one step, %v", len(lists), len(expired), err)
	}
	deleted, err := s.sweep(t.Context())
	if err != nil || deleted != calls || s.count(t) != 0 {
		t.Fatalf("deleted %d of %d, %d left, %v", deleted, calls, s.count(t), err)
	}
	if lists, _, err := s.nextEnded([]byte{endPrefix}, s.now()); len(lists) > 0 || err != nil {
		t.Errorf("%d lists are left, %v", len(lists), err)
	}
}

func TestOnlyAHeldLockIsCalledAnotherProcess(t *testing.T) {
	for _, row := range []struct {
		name string
		err  error
		want bool
	}{
		{"held by another process", syscall.EAGAIN, true},
		{"held by another process, as some systems say it", syscall.EACCES, true},
		{"held by this process", errors.New("lock held by current process"), true},
		{"the lock file may not be made", &fs.PathError{Op: "open", Path: "data/LOCK", Err: syscall.EACCES}, false},
		{"a full disk", &fs.PathError{Op: "open", Path: "data/LOCK", Err: syscall.ENOSPC}, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			if got := isLocked(row.err); got != row.want {
				t.Errorf("isLocked(%v) = %v", row.err, got)
			}
		})
	}
}

// While the owner's sync is held up, a lookup waits with it: what it tells must outlive a crash.
func TestLookupTellsOnlyWhatIsDurable(t *testing.T) {
	var held atomic.Bool
	syncing, release := make(chan struct{}, 1000), make(chan struct{})
	disk := errorfs.Wrap(vfs.NewMem(), errorfs.InjectorFunc(func(op errorfs.Op) error {
		if held.Load() && (op.Kind == errorfs.OpFileSync || op.Kind == errorfs.OpFileSyncData) {
			syncing <- struct{}{}
			<-release
		}
		return nil
	}))
	s := mustOpen(t, Options{Path: "data", FS: disk, SweepInterval: -1})
	defer s.Close()
	mustClaim(t, s, claims(0, 1)) // makes the scope
	held.Store(true)
	claimed := make(chan error, 1)
	go func() {
		_, err := s.Claim(t.Context(), scope, claims(1, 1))
		claimed <- err
	}()
	<-syncing
	record, _ := s.scope(scope)
	key := claimKey(nil, record.ID, claims(1, 1)[0].ID)
	for visible := false; !visible && t.Context().Err() == nil; {
		_, visible, _ = s.get(key, s.now())
	}
	told := make(chan dedup.Answer, 1)
	go func() {
		answer, _ := s.Lookup(t.Context(), scope, claims(1, 1)[0].ID)
		told <- answer
	}()
	select {
	case answer := <-told:
		t.Errorf("told %+v before the sync", answer)
		told <- answer
	case <-time.After(100 * time.Millisecond):
	}
	held.Store(false)
	close(release)
	if err := <-claimed; err != nil {
		t.Error(err)
	}
	if answer := <-told; answer.Outcome != dedup.Exists {
		t.Errorf("told %+v after the sync", answer)
	}
}
