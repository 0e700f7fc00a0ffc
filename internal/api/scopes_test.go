package api

import (
	"context"
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/durationpb"

	kdedupv1 "github.com/kdedup/kdedup/api/kdedup/v1"
	"github.com/kdedup/kdedup/api/kdedup/v1/kdedupv1connect"
	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/idempotency"
	keysmemory "github.com/kdedup/kdedup/idempotency/memory"
)

// tenant is a caller of one scope, by one of the doors.
type tenant struct {
	claims kdedupv1connect.ClaimServiceClient
	keys   kdedupv1connect.IdempotencyServiceClient
}

// methodsOf asks every method about an ID in a scope, with a lease that is good there, and returns
// the errors by method.
func (c tenant) methodsOf(
	ctx context.Context, scope, id string, lease []byte, place int64,
) map[string]error {
	errs := make(map[string]error)
	_, errs["Judge"] = c.claims.Judge(ctx, connect.NewRequest(&kdedupv1.JudgeRequest{
		Scope: scope, Messages: []*kdedupv1.Message{{Id: id, Place: at(place)}}}))
	_, errs["Lookup"] = c.claims.Lookup(ctx, connect.NewRequest(&kdedupv1.LookupRequest{
		Scope: scope, Id: id}))
	_, errs["Release"] = c.claims.Release(ctx, connect.NewRequest(&kdedupv1.ReleaseRequest{
		Scope: scope, Id: id}))
	_, errs["Begin"] = c.keys.Begin(ctx, connect.NewRequest(&kdedupv1.BeginRequest{
		Scope: scope, Key: id, RequestHash: hash("another request")}))
	_, errs["Complete"] = c.keys.Complete(ctx, connect.NewRequest(&kdedupv1.CompleteRequest{
		Scope: scope, Key: id, Lease: lease, Response: []byte("forged")}))
	_, errs["Fail"] = c.keys.Fail(ctx, connect.NewRequest(&kdedupv1.FailRequest{
		Scope: scope, Key: id, Lease: lease, Message: "forged", Final: true}))
	_, errs["Extend"] = c.keys.Extend(ctx, connect.NewRequest(&kdedupv1.ExtendRequest{
		Scope: scope, Key: id, Lease: lease}))
	return errs
}

// Callers, their scopes, the scopes that they try and the doors are drawn at random. Whoever may
// not use a scope gets the same answer from every method, whether there is such a scope or not, and
// whether its lease is good or not; and nothing there changes.
func TestNoMethodReachesAScopeThatTheCallerMayNotUse(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	names := []string{"a", "b", "c", "d"}
	var callers []Caller
	may := make(map[[2]string]bool)
	for i := range 5 {
		c := Caller{Name: fmt.Sprint("caller-", i), Token: fmt.Sprint("the token of ", i)}
		for _, scope := range names {
			if random.IntN(2) == 0 {
				c.Scopes = append(c.Scopes, scope)
				may[[2]string{c.Token, scope}] = true
			}
		}
		callers = append(callers, c)
	}
	owner := Caller{Name: "owner", Token: "the token of all", Scopes: names}
	keys := keysmemory.New()
	server, store := inMemory(t, Options{Keys: keys, Callers: append(callers, owner)}, names...)
	door := func(token string) tenant {
		for _, options := range protocols { // in an order of its own each time
			options = append([]connect.ClientOption{bearer(token)}, options...)
			return tenant{clientOf(t, server, options...), keysOf(t, server.URL(), options...)}
		}
		panic("no doors")
	}
	all := door(owner.Token)
	if asked := reflect.ValueOf(methods).Len(); asked != len(all.methodsOf(t.Context(), "", "x",
		nil, 0)) {
		t.Fatalf("the API has %d methods, not all of which are tried", asked)
	}
	for step := range 200 {
		scope, id := names[random.IntN(len(names))], fmt.Sprint("id-", step)
		if step%5 == 0 {
			scope = fmt.Sprint("nothing-", step) // there is none
		}
		caller := callers[random.IntN(len(callers))]
		if may[[2]string{caller.Token, scope}] {
			continue
		}
		claimed := dedup.Answer{}
		var lease []byte
		if step%5 != 0 {
			if _, err := store.Claim(t.Context(), scopeNamed(scope),
				[]dedup.Claim{{ID: dedup.ID(id), Owner: byHand}}); err != nil {
				t.Fatal(err)
			}
			claimed = lookedUp(t, store, scope, id)
			lease = begin(t, all.keys, &kdedupv1.BeginRequest{Scope: scope, Key: id,
				Hold: durationpb.New(scopeNamed(scope).TTL)}).GetAcquired().GetLease()
		}
		want := fmt.Sprintf("scope: %q is none of the scopes that this caller may use", scope)
		for method, err := range door(caller.Token).methodsOf(t.Context(), scope, id, lease, 7) {
			if connect.CodeOf(err) != connect.CodePermissionDenied || messageOf(err) != want {
				t.Errorf("%s of %v in %s: %v", method, caller, scope, err)
			}
		}
		if step%5 == 0 {
			continue
		}
		if now := lookedUp(t, store, scope, id); now != claimed {
			t.Errorf("the claim in %s is now %+v, was %+v", scope, now, claimed)
		}
		record, err := keys.Get(t.Context(), idempotency.Key{Namespace: scope, ID: id})
		if err != nil || record.State != idempotency.Started {
			t.Errorf("the key in %s is now %+v, %v", scope, record, err)
		}
	}
}

func lookedUp(t *testing.T, store dedup.Store, scope, id string) dedup.Answer {
	t.Helper()
	answer, err := store.Lookup(t.Context(), scopeNamed(scope), dedup.ID(id))
	if err != nil || answer.Owner != byHand {
		t.Errorf("the claim in %s is now %+v, %v", scope, answer, err)
	}
	return answer
}
