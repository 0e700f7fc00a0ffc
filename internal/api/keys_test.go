package api

import (
	"context"
	"crypto/sha256"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/durationpb"

	kdedupv1 "github.com/kdedup/kdedup/api/kdedup/v1"
	"github.com/kdedup/kdedup/api/kdedup/v1/kdedupv1connect"
	"github.com/kdedup/kdedup/idempotency"
	keyfiles "github.com/kdedup/kdedup/idempotency/embedded"
	"github.com/kdedup/kdedup/idempotency/memory"
)

func keysOf(
	t testing.TB, url string, options ...connect.ClientOption,
) kdedupv1connect.IdempotencyServiceClient {
	return kdedupv1connect.NewIdempotencyServiceClient(clearText(t), url, options...)
}

func hash(request string) []byte {
	sum := sha256.Sum256([]byte(request))
	return sum[:]
}

func begin(
	t testing.TB, client kdedupv1connect.IdempotencyServiceClient, r *kdedupv1.BeginRequest,
) *kdedupv1.BeginResponse {
	t.Helper()
	if r.Scope == "" {
		r.Scope = "orders"
	}
	if r.RequestHash == nil {
		r.RequestHash = hash("pay 10 to Bob")
	}
	response, err := client.Begin(t.Context(), connect.NewRequest(r))
	if err != nil {
		t.Fatal(err)
	}
	return response.Msg
}

func complete(
	t testing.TB, client kdedupv1connect.IdempotencyServiceClient, key string, lease []byte,
	response string,
) error {
	t.Helper()
	_, err := client.Complete(t.Context(), connect.NewRequest(&kdedupv1.CompleteRequest{
		Scope: "orders", Key: key, Lease: lease, Response: []byte(response)}))
	return err
}

func TestAKeyGoesThroughItsStatesAtEveryDoor(t *testing.T) {
	for name, options := range protocols {
		t.Run(name, func(t *testing.T) {
			server, _ := inMemory(t, Options{Keys: memory.New()}, "orders")
			client := keysOf(t, server.URL(), options...)
			ask := func() *kdedupv1.BeginResponse {
				return begin(t, client, &kdedupv1.BeginRequest{Key: "k"})
			}
			first := ask().GetAcquired()
			if len(first.GetLease()) == 0 || first.GetHeld().AsDuration() != defaultHold {
				t.Fatalf("the first caller got %v", first)
			}
			if other := ask().GetInProgress(); other.GetRetryAfter().AsDuration() <= 0 {
				t.Errorf("another caller got %v", other)
			}
			if r := begin(t, client, &kdedupv1.BeginRequest{Key: "k",
				RequestHash: hash("pay 20")}); r.GetConflict() == nil {
				t.Errorf("another request got %v", r)
			}
			extended, err := client.Extend(t.Context(), connect.NewRequest(
				&kdedupv1.ExtendRequest{Scope: "orders", Key: "k", Lease: first.GetLease()}))
			if err != nil {
				t.Fatal(err)
			}
			for range 2 { // a lost answer is repeated
				if err := complete(t, client, "k", extended.Msg.GetLease(),
					"receipt"); err != nil {
					t.Error(err)
				}
			}
			if err := complete(t, client, "k", extended.Msg.GetLease(),
				"another"); connect.CodeOf(err) != connect.CodeFailedPrecondition {
				t.Errorf("a second response: %v", err)
			}
			if r := ask().GetCompleted(); string(r.GetResponse()) != "receipt" ||
				r.GetFencingToken() != first.GetFencingToken() {
				t.Errorf("a later caller got %v", r)
			}
			failing := begin(t, client, &kdedupv1.BeginRequest{Key: "f"}).GetAcquired()
			if _, err := client.Fail(t.Context(), connect.NewRequest(&kdedupv1.FailRequest{
				Scope: "orders", Key: "f", Lease: failing.GetLease(), Message: "declined",
				Final: true})); err != nil {
				t.Fatal(err)
			}
			if r := begin(t, client, &kdedupv1.BeginRequest{Key: "f"}); r.GetFailed().
				GetMessage() != "declined" {
				t.Errorf("after a final failure: %v", r)
			}
		})
	}
}

// longHold is longer than a busy machine takes for an effect and its end. The key of a Begin whose
// answer got lost waits for so long.
const longHold = 15 * time.Second

// execute is what a program does: the effect if it acquires the key, and again until there is an
// outcome.
func execute(
	t testing.TB, url func() string, key string, effect func(token int64) string,
) (response string) {
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	http := clearText(t)
	for ctx.Err() == nil {
		client := kdedupv1connect.NewIdempotencyServiceClient(http, url(), connect.WithGRPC())
		r, err := client.Begin(ctx, connect.NewRequest(&kdedupv1.BeginRequest{Scope: "orders",
			Key: key, RequestHash: hash("pay 10 to Bob"), Wait: durationpb.New(time.Second),
			Hold: durationpb.New(longHold)}))
		if err != nil {
			continue
		}
		if done := r.Msg.GetCompleted(); done != nil {
			return string(done.GetResponse())
		}
		acquired := r.Msg.GetAcquired()
		if acquired == nil {
			continue
		}
		receipt := effect(acquired.GetFencingToken())
		for ctx.Err() == nil {
			client := kdedupv1connect.NewIdempotencyServiceClient(http, url(), connect.WithGRPC())
			_, err = client.Complete(ctx, connect.NewRequest(&kdedupv1.CompleteRequest{
				Scope: "orders", Key: key, Lease: acquired.GetLease(), Response: []byte(receipt)}))
			if err == nil || connect.CodeOf(err) == connect.CodeFailedPrecondition {
				break
			}
		}
	}
	return ""
}

func TestOf200CallersOfOneKeyOneHasTheEffect(t *testing.T) {
	server, _ := inMemory(t, Options{Keys: memory.New()}, "orders")
	var effects atomic.Int32
	var callers sync.WaitGroup
	for range 200 {
		callers.Go(func() {
			if got := execute(t, server.URL, "k", func(int64) string {
				return fmt.Sprint("receipt ", effects.Add(1))
			}); got != "receipt 1" {
				t.Errorf("a caller got %q", got)
			}
		})
	}
	callers.Wait()
	if n := effects.Load(); n != 1 {
		t.Errorf("the effect took place %d times", n)
	}
}

func TestTheKeyOfADeadCallerIsTakenOverAndItsLeaseEndsNothing(t *testing.T) {
	server, _ := inMemory(t, Options{Keys: memory.New()}, "orders")
	client := keysOf(t, server.URL())
	dead := begin(t, client, &kdedupv1.BeginRequest{Key: "k",
		Hold: durationpb.New(200 * time.Millisecond)}).GetAcquired()
	tokens := make(chan int64, 1)
	if got := execute(t, server.URL, "k", func(token int64) string {
		tokens <- token
		return "the successor's"
	}); got != "the successor's" {
		t.Errorf("the successor got %q", got)
	}
	if token := <-tokens; token <= dead.GetFencingToken() {
		t.Errorf("token %d after %d", token, dead.GetFencingToken())
	}
	if err := complete(t, client, "k", dead.GetLease(), "the dead caller's"); connect.CodeOf(
		err) != connect.CodeFailedPrecondition {
		t.Errorf("the dead caller completed it: %v", err)
	}
}

func TestAKilledServerRunsNoEffectTwice(t *testing.T) {
	const keys = 300
	path := t.TempDir()
	var url atomic.Value
	process, at := startServer(t, path)
	defer func() { _ = process.Process.Kill(); _ = process.Wait() }()
	url.Store(at)
	var (
		effects [keys]atomic.Int32
		done    atomic.Int32
		callers sync.WaitGroup
	)
	for caller := range 4 {
		callers.Go(func() {
			for n := range keys {
				key := (n + caller*7) % keys
				got := execute(t, func() string { return url.Load().(string) }, fmt.Sprint(key),
					func(int64) string { return fmt.Sprint("receipt ", effects[key].Add(1)) })
				if got != "receipt 1" {
					t.Errorf("caller %d got %q for %d", caller, got, key)
				}
				done.Add(1)
			}
		})
	}
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for kill := range int32(3) {
		for done.Load() < 4*keys*(kill+1)/4 {
			<-tick.C
		}
		process = killServer(t, process, path, &url)
	}
	callers.Wait()
	for key := range effects {
		if n := effects[key].Load(); n != 1 {
			t.Errorf("the effect of key %d took place %d times", key, n)
		}
	}
}

func TestACallerOfOneScopeCannotUseTheKeysOfAnother(t *testing.T) {
	store := memory.New()
	server, _ := inMemory(t, Options{Keys: store, Callers: []Caller{
		{Name: "shipping", Token: "token of shipping", Scopes: []string{"orders"}},
		{Name: "billing", Token: "token of billing", Scopes: []string{"payments"}},
	}}, "orders", "payments")
	billing := keysOf(t, server.URL(), bearer("token of billing"))
	shipping := keysOf(t, server.URL(), bearer("token of shipping"))
	theirs := begin(t, billing,
		&kdedupv1.BeginRequest{Scope: "payments", Key: "k"}).GetAcquired()
	if r := begin(t, shipping, &kdedupv1.BeginRequest{Key: "k"}); r.GetAcquired() == nil {
		t.Errorf("the same key in another scope: %v", r)
	}
	_, began := shipping.Begin(t.Context(), connect.NewRequest(&kdedupv1.BeginRequest{
		Scope: "payments", Key: "k", RequestHash: hash("")}))
	_, completed := shipping.Complete(t.Context(), connect.NewRequest(
		&kdedupv1.CompleteRequest{Scope: "payments", Key: "k", Lease: theirs.GetLease()}))
	_, failed := shipping.Fail(t.Context(), connect.NewRequest(
		&kdedupv1.FailRequest{Scope: "payments", Key: "k", Lease: theirs.GetLease()}))
	_, extended := shipping.Extend(t.Context(), connect.NewRequest(
		&kdedupv1.ExtendRequest{Scope: "payments", Key: "k", Lease: theirs.GetLease()}))
	for method, err := range map[string]error{"begin": began, "complete": completed,
		"fail": failed, "extend": extended} {
		if connect.CodeOf(err) != connect.CodePermissionDenied {
			t.Errorf("%s: %v", method, err)
		}
	}
	// even with a lease that leaked, the key is another one in the caller's own scope
	if err := complete(t, shipping, "k", theirs.GetLease(), "x"); connect.CodeOf(err) !=
		connect.CodeFailedPrecondition {
		t.Errorf("a foreign lease: %v", err)
	}
	record, err := store.Get(t.Context(), idempotency.Key{Namespace: "payments", ID: "k"})
	if err != nil || record.State != idempotency.Started {
		t.Errorf("the key of the other scope is now %+v, %v", record, err)
	}
}

func TestWrongRequestsOfKeysNameThePlace(t *testing.T) {
	server, _ := inMemory(t, Options{Keys: memory.New()}, "orders")
	client := keysOf(t, server.URL())
	for want, r := range map[string]*kdedupv1.BeginRequest{
		"request_hash: must have 32 bytes, those of a SHA-256, got 3": {Key: "k",
			RequestHash: []byte("abc")},
		"key: invalid idempotency key: the ID is empty": {},
		"hold: must be 10ms to 1h0m0s, the ttl of the scope, got 1ms": {Key: "k",
			Hold: durationpb.New(time.Millisecond)},
		"keep: must be 1s to 1h0m0s, the ttl of the scope, got 2h0m0s": {Key: "k",
			Keep: durationpb.New(2 * time.Hour)},
		"wait: must be 0s to 1h0m0s, the ttl of the scope, got -1s": {Key: "k",
			Wait: durationpb.New(-time.Second)},
	} {
		r.Scope = "orders"
		if r.RequestHash == nil {
			r.RequestHash = hash("")
		}
		_, err := client.Begin(t.Context(), connect.NewRequest(r))
		if err == nil || !strings.HasPrefix(messageOf(err), want) ||
			connect.CodeOf(err) != connect.CodeInvalidArgument {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	if err := complete(t, client, "k", []byte("no lease"), ""); connect.CodeOf(err) !=
		connect.CodeInvalidArgument {
		t.Errorf("a lease of other bytes: %v", err)
	}
}

// openKeys opens the keys of a server in the directory of its store.
func openKeys(path string) (*keyfiles.Store, error) {
	return keyfiles.Open(keyfiles.Options{Path: filepath.Join(path, "keys")})
}
