package embedded

import (
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/internal/hashlog"
)

// disk makes files whose writes fail while it is full, and whose syncs wait while they are held.
type disk struct {
	full, held atomic.Bool
	syncing    chan struct{}
	release    chan struct{}
}

type diskFile struct {
	*os.File
	disk *disk
}

func (d *disk) create(name string) (hashlog.File, error) {
	if d.full.Load() {
		return nil, syscall.ENOSPC
	}
	file, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	return diskFile{file, d}, err
}

func (f diskFile) Write(p []byte) (int, error) {
	if f.disk.full.Load() {
		return 0, syscall.ENOSPC
	}
	return f.File.Write(p)
}

func (f diskFile) Sync() error {
	if f.disk.held.Load() {
		f.disk.syncing <- struct{}{}
		<-f.disk.release
	}
	return f.File.Sync()
}

// While the owner's sync is held up, a look-up and another claim wait with it: what they tell must
// outlive a crash.
func TestOnlyWhatIsDurableIsTold(t *testing.T) {
	d := disk{syncing: make(chan struct{}, 1000), release: make(chan struct{})}
	s := mustOpen(t, Options{Path: t.TempDir(), SweepInterval: -1, create: d.create})
	defer s.Close()
	release := sync.OnceFunc(func() { close(d.release) })
	defer release()
	mustClaim(t, s, claims(0, 1)) // makes the scope
	d.held.Store(true)
	claimed, told := make(chan dedup.Answer, 2), make(chan dedup.Answer, 1)
	claim := func() {
		answers, err := s.Claim(t.Context(), scope, claims(1, 1))
		if err != nil {
			t.Error(err)
		}
		claimed <- answers[0]
	}
	go claim()
	select {
	case <-d.syncing:
	case answer := <-claimed:
		t.Fatalf("answered %+v without a sync", answer)
	}
	go claim()
	go func() {
		answer, err := s.Lookup(t.Context(), scope, claims(1, 1)[0].ID)
		if err != nil {
			t.Error(err)
		}
		told <- answer
	}()
	select {
	case answer := <-told:
		t.Fatalf("told %+v before the sync", answer)
	case answer := <-claimed:
		t.Fatalf("answered %+v before the sync", answer)
	case <-time.After(100 * time.Millisecond):
	}
	d.held.Store(false)
	release()
	first, second := <-claimed, <-claimed
	if answer := <-told; answer.Outcome != dedup.Exists || first.Outcome == second.Outcome {
		t.Errorf("after the sync: %+v, %+v and %+v", answer, first, second)
	}
}
