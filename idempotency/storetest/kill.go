package storetest

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/kdedup/kdedup/idempotency"
)

// ownerEnv makes a test binary the owner of the key with this ID; see OwnerProcess.
const ownerEnv = "KDEDUP_IDEMPOTENCY_OWNER"

// ownerLease is short, because the callers wait for it. A caller on a busy machine that loses it
// would run the function twice, and the test would tell.
const ownerLease = 3 * time.Second

// Owner says how a process of its own can use the store.
type Owner struct {
	Env []string // for the process, beside those of this one; as in "NAME=value"
	// the store is opened after the process was killed, because it is for one process
	Exclusive bool
}

// OwnerProcess makes the process an owner that never ends its work, when the suite started it as
// one; otherwise it returns at once. A package that sets Features.Owner calls it first in TestMain,
// with a function that opens the store.
func OwnerProcess(open func() (idempotency.Store, error)) {
	id := os.Getenv(ownerEnv)
	if id == "" {
		return
	}
	fmt.Fprintln(os.Stderr, own(id, open))
	os.Exit(1)
}

func own(id string, open func() (idempotency.Store, error)) error {
	store, err := open()
	if err != nil {
		return err
	}
	executor, err := idempotency.New(store,
		idempotency.Options{Lease: ownerLease, StoreTimeout: patience})
	if err != nil {
		return err
	}
	_, err = executor.Execute(context.Background(), idempotency.Key{Namespace: "killed", ID: id},
		request,
		func(ctx context.Context) ([]byte, error) {
			token, _ := idempotency.Token(ctx)
			fmt.Println(token)
			<-ctx.Done()
			return nil, context.Cause(ctx)
		})
	return fmt.Errorf("the owner ended: %w", err)
}

// KilledOwner checks that of 200 callers one takes over from an owner that is killed with SIGKILL,
// a process of its own; see OwnerProcess. They wait for it already, unless the store is exclusive.
func KilledOwner(t *testing.T, open func(t *testing.T) idempotency.Store, owner Owner) {
	key := idempotency.Key{Namespace: "killed", ID: newKey().ID}
	process, token := startOwner(t, key.ID, owner.Env)
	var (
		runs   atomic.Int32
		killed atomic.Bool
	)
	if owner.Exclusive {
		kill(t, process)
		killed.Store(true)
	}
	s := &subject{Store: open(t)}
	if !owner.Exclusive {
		if _, err := s.newExecutor(t, s, idempotency.Options{Wait: idempotency.NoWait}).Execute(
			t.Context(), key, request, nil,
		); err == nil {
			t.Fatal("the key of a living owner was free")
		}
		var killer sync.WaitGroup
		killer.Go(func() {
			<-time.After(ownerLease / 3) // the callers are waiting, and have seen it renew
			killed.Store(true)
			kill(t, process)
		})
		defer killer.Wait()
	}
	// The successors' own lease is long: they hold on to what they took over.
	results := s.callAll(t, key, idempotency.Options{Poll: 100 * time.Millisecond},
		func(ctx context.Context) ([]byte, error) {
			if now, _ := idempotency.Token(ctx); now <= token || !killed.Load() {
				t.Errorf("taken over with token %d after %d, owner killed: %t", now, token,
					killed.Load())
			}
			return fmt.Appendf(nil, "receipt %d", runs.Add(1)), nil
		})
	wantOne(t, results, &runs)
}

// startOwner returns when the process runs the function, and its fencing token.
func startOwner(t *testing.T, id string, env []string) (process *exec.Cmd, token int64) {
	t.Helper()
	process = exec.Command(os.Args[0])
	process.Env = append(append(os.Environ(), env...), ownerEnv+"="+id)
	process.Stderr = os.Stderr
	out, err := process.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = process.Process.Kill(); _ = process.Wait() })
	lines := bufio.NewScanner(out)
	if !lines.Scan() {
		t.Fatalf("the owner did not start: %v", lines.Err())
	}
	if token, err = strconv.ParseInt(lines.Text(), 10, 64); err != nil {
		t.Fatal(err)
	}
	return process, token
}

// kill is kill -9.
func kill(t *testing.T, process *exec.Cmd) {
	if err := process.Process.Kill(); err != nil {
		t.Errorf("kill the owner: %v", err)
	}
	_ = process.Wait()
}
