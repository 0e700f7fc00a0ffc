package api

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/timestamppb"

	kdedupv1 "github.com/kdedup/kdedup/api/kdedup/v1"
	"github.com/kdedup/kdedup/api/kdedup/v1/kdedupv1connect"
	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/dedup/memory"
)

func scopeNamed(name string) dedup.Scope {
	return dedup.Scope{ConsumerGroup: "api", Name: name, TTL: time.Hour, Buckets: 16,
		Extractor: ExtractorName}
}

// inMemory serves a store with some scopes.
func inMemory(t testing.TB, o Options, names ...string) (*Server, *memory.Store) {
	t.Helper()
	store := memory.New(memory.Options{Violation: t.Errorf})
	known := make(map[string]dedup.Scope)
	for _, name := range names {
		known[name] = scopeNamed(name)
		if err := store.Register(t.Context(), known[name]); err != nil {
			t.Fatal(err)
		}
	}
	if o.Store == nil {
		o.Store = store
	}
	o.Scopes = func(name string) (dedup.Scope, bool) {
		scope, exists := known[name]
		return scope, exists
	}
	return serve(t, o), store
}

func at(offset int64) *kdedupv1.Place {
	return &kdedupv1.Place{Place: &kdedupv1.Place_Record{Record: &kdedupv1.Record{
		Topic: "orders", Offset: offset}}}
}

func text(place string) *kdedupv1.Place {
	return &kdedupv1.Place{Place: &kdedupv1.Place_Text{Text: place}}
}

func judgeAll(
	t testing.TB, client kdedupv1connect.ClaimServiceClient, messages ...*kdedupv1.Message,
) []*kdedupv1.Judgement {
	t.Helper()
	response, err := client.Judge(t.Context(), connect.NewRequest(
		&kdedupv1.JudgeRequest{Scope: "orders", Messages: messages}))
	if err != nil {
		t.Fatal(err)
	}
	if n := len(response.Msg.GetJudgements()); n != len(messages) {
		t.Fatalf("%d judgements of %d messages", n, len(messages))
	}
	return response.Msg.GetJudgements()
}

func wantVerdicts(t testing.TB, got []*kdedupv1.Judgement, want ...string) {
	t.Helper()
	for i, j := range got {
		if v := strings.TrimPrefix(j.GetVerdict().String(), "VERDICT_"); v != want[i] {
			t.Errorf("message %d: %s, want %s", i, v, want[i])
		}
	}
}

func TestEveryDoorGivesTheSameVerdicts(t *testing.T) {
	one, other := []byte("0123456789abcdef"), []byte("fedcba9876543210")
	for name, options := range protocols {
		t.Run(name, func(t *testing.T) {
			server, _ := inMemory(t, Options{}, "orders")
			client := clientOf(t, server, options...)
			batch := []*kdedupv1.Message{
				{Id: "a", Place: at(0), Fingerprint: one},
				{Id: "a", Place: at(1), Fingerprint: one},
				{Id: "a", Place: at(2), Fingerprint: other},
				{IdBytes: []byte("a"), Place: text("0"), Fingerprint: one},
				{IdBytes: []byte{0xff, 0}, Place: text("ticket"), Fingerprint: one},
			}
			wantVerdicts(t, judgeAll(t, client, batch...), "FIRST", "DUPLICATE", "CONFLICT",
				"DUPLICATE", "FIRST")
			again := judgeAll(t, client, batch...)
			wantVerdicts(t, again, "MINE", "DUPLICATE", "CONFLICT", "DUPLICATE", "MINE")
			if owner := again[1].GetOwner().GetRecord(); owner.GetTopic() != "orders" ||
				owner.GetOffset() != 0 {
				t.Errorf("the owner of the copy is %v", owner)
			}
			if n := len(again[4].GetOwner().GetDigest()); n != 28 {
				t.Errorf("the owner at a place of text has a digest of %d bytes", n)
			}
			batch[0].SettledUntil = timestamppb.New(time.Now().Add(time.Second))
			wantVerdicts(t, judgeAll(t, client, batch[0]), "REPLAY")
		})
	}
}

func TestAnAnswerThatGotLostIsRecognised(t *testing.T) {
	lose := true
	store := memory.New(memory.Options{Faults: func([]dedup.Claim) (f memory.Fault) {
		if lose {
			f = memory.Ambiguous(errors.New("the answer got lost"))
		}
		lose = false
		return f
	}, Violation: t.Errorf})
	if err := store.Register(t.Context(), scopeNamed("orders")); err != nil {
		t.Fatal(err)
	}
	server, _ := inMemory(t, Options{Store: store}, "orders")
	client := clientOf(t, server)
	wantVerdicts(t, judgeAll(t, client, &kdedupv1.Message{Id: "a", Place: at(0)}), "MINE")
}

func TestLookupAndReleaseAreThoseOfTheStore(t *testing.T) {
	server, store := inMemory(t, Options{}, "orders")
	client := clientOf(t, server)
	look := func() *kdedupv1.Claim {
		t.Helper()
		r, err := client.Lookup(t.Context(), connect.NewRequest(
			&kdedupv1.LookupRequest{Scope: "orders", Id: "a"}))
		if err != nil {
			t.Fatal(err)
		}
		return r.Msg.GetClaim()
	}
	if claim := look(); claim != nil {
		t.Errorf("nobody claimed it, got %v", claim)
	}
	judgeAll(t, client, &kdedupv1.Message{Id: "a", Place: at(7), Fingerprint: make([]byte, 16)})
	if claim := look(); claim.GetOwner().GetRecord().GetOffset() != 7 {
		t.Errorf("got %v", claim)
	}
	if _, err := client.Release(t.Context(), connect.NewRequest(
		&kdedupv1.ReleaseRequest{Scope: "orders", IdBytes: []byte("a")})); err != nil {
		t.Fatal(err)
	}
	if claim := look(); claim != nil {
		t.Errorf("it was released, got %v", claim)
	}
	if _, err := store.Claim(t.Context(), scopeNamed("orders"),
		[]dedup.Claim{{ID: "a", Owner: byHand}}); err != nil {
		t.Fatal(err)
	}
	if claim := look(); !claim.GetOwner().GetByHand() {
		t.Errorf("an ID claimed by hand: got %v", claim)
	}
}

func TestWrongRequestsNameThePlaceAndTheRemedy(t *testing.T) {
	o := Options{Limits: testLimits}
	o.Limits.Batch, o.Limits.Bytes = 3, 100_000
	server, _ := inMemory(t, o, "orders")
	record := func(r *kdedupv1.Record) *kdedupv1.Place {
		return &kdedupv1.Place{Place: &kdedupv1.Place_Record{Record: r}}
	}
	epoch := int32(-2)
	for want, r := range map[string]*kdedupv1.JudgeRequest{
		"scope: is required": {},
		`scope: "none" is none of the scopes that this caller may use`: {Scope: "none"},
		"messages: must be at most 3 (api.max_batch), got 4": {Scope: "orders",
			Messages: make([]*kdedupv1.Message, 4)},
		"messages[0].id: is required, as id or as id_bytes": of(&kdedupv1.Message{Place: at(0)}),
		"messages[1].id: set either id or id_bytes, not both": of(
			&kdedupv1.Message{Id: "a", Place: at(0)},
			&kdedupv1.Message{Id: "a", IdBytes: []byte("a"), Place: at(0)}),
		"messages[0].id: must have at most 32768 bytes, got 32769": of(
			&kdedupv1.Message{Id: strings.Repeat("a", 32769), Place: at(0)}),
		"messages[0].place: is required: record, text or raw": of(&kdedupv1.Message{Id: "a"}),
		"messages[0].place: must have 1 to 1024 bytes, got 0": of(
			&kdedupv1.Message{Id: "a", Place: text("")}),
		"messages[0].place: must have 1 to 1024 bytes, got 1025": of(
			&kdedupv1.Message{Id: "a", Place: text(strings.Repeat("p", 1025))}),
		"messages[0].place.record.topic: is required, as topic or as topic_id": of(
			&kdedupv1.Message{Id: "a", Place: record(&kdedupv1.Record{})}),
		"messages[0].place.record.topic: set either topic or topic_id, not both": of(
			&kdedupv1.Message{Id: "a",
				Place: record(&kdedupv1.Record{Topic: "t", TopicId: make([]byte, 16)})}),
		"messages[0].place.record.topic_id: must have 16 bytes, got 3": of(
			&kdedupv1.Message{Id: "a", Place: record(&kdedupv1.Record{TopicId: []byte("abc")})}),
		"messages[0].place.record.topic_id: must not be all zero": of(
			&kdedupv1.Message{Id: "a", Place: record(&kdedupv1.Record{TopicId: make([]byte, 16)})}),
		"messages[0].place.record.partition: must be 0 at least, got -1": of(
			&kdedupv1.Message{Id: "a",
				Place: record(&kdedupv1.Record{Topic: "t", Partition: -1})}),
		"messages[0].place.record.offset: must be 0 at least, got -9223372036854775808": of(
			&kdedupv1.Message{Id: "a",
				Place: record(&kdedupv1.Record{Topic: "t", Offset: math.MinInt64})}),
		"messages[0].place.record.leader_epoch: must be -1 at least, got -2": of(
			&kdedupv1.Message{Id: "a",
				Place: record(&kdedupv1.Record{Topic: "t", LeaderEpoch: &epoch})}),
		"messages[0].fingerprint: must have 16 bytes or none, got 15": of(
			&kdedupv1.Message{Id: "a", Place: at(0), Fingerprint: make([]byte, 15)}),
	} {
		_, err := clientOf(t, server).Judge(t.Context(), connect.NewRequest(r))
		code := connect.CodeInvalidArgument
		if r.GetScope() == "none" {
			code = connect.CodePermissionDenied
		}
		if err == nil || messageOf(err) != want || connect.CodeOf(err) != code {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	_, err := clientOf(t, server).Judge(t.Context(), connect.NewRequest(
		of(&kdedupv1.Message{Id: strings.Repeat("a", 200_000), Place: at(0)})))
	if connect.CodeOf(err) != connect.CodeResourceExhausted {
		t.Errorf("a request of 200 kB: %v", err)
	}
}

func of(messages ...*kdedupv1.Message) *kdedupv1.JudgeRequest {
	return &kdedupv1.JudgeRequest{Scope: "orders", Messages: messages}
}

// stuck is a store whose server is gone.
type stuck struct{ dedup.Store }

func (stuck) Claim(
	ctx context.Context, _ dedup.Scope, claims []dedup.Claim,
) ([]dedup.Answer, error) {
	return make([]dedup.Answer, len(claims)), errors.New("no route to host")
}

func TestARequestWaitsNoLongerThanItsDeadlineAndTheLimit(t *testing.T) {
	o := Options{Store: stuck{}, Limits: testLimits}
	server, _ := inMemory(t, o, "orders")
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	begin := time.Now()
	_, err := clientOf(t, server).Judge(ctx,
		connect.NewRequest(of(&kdedupv1.Message{Id: "a", Place: at(0)})))
	if took := time.Since(begin); connect.CodeOf(err) != connect.CodeDeadlineExceeded ||
		took > 10*time.Second {
		t.Errorf("%v after %v", err, took)
	}
	o.Limits.Wait = 100 * time.Millisecond
	server, _ = inMemory(t, o, "orders")
	_, err = clientOf(t, server).Judge(t.Context(),
		connect.NewRequest(of(&kdedupv1.Message{Id: "a", Place: at(0)})))
	if connect.CodeOf(err) != connect.CodeUnavailable || messageOf(err) != errWaited.Error() {
		t.Errorf("a wait beyond max_wait: %v", err)
	}
}
