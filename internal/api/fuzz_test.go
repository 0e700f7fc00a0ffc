package api

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/prometheus/client_golang/prometheus"

	kdedupv1 "github.com/kdedup/kdedup/api/kdedup/v1"
	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/dedup/memory"
	keysmemory "github.com/kdedup/kdedup/idempotency/memory"
)

// FuzzRequest sends any bytes to any method through each door. Nothing may panic, and an answer to
// a request that is understood has a judgement for each message.
func FuzzRequest(f *testing.F) {
	whole := of(&kdedupv1.Message{Id: "a", Place: at(1), Fingerprint: make([]byte, 16)},
		&kdedupv1.Message{IdBytes: []byte{0xff}, Place: text("ticket")})
	binary, err := proto.Marshal(whole)
	if err != nil {
		f.Fatal(err)
	}
	asJSON, err := protojson.Marshal(whole)
	if err != nil {
		f.Fatal(err)
	}
	const judge, lookup = "ClaimService/Judge", "ClaimService/Lookup"
	f.Add(judge, "application/proto", binary)
	f.Add(judge, "application/json", asJSON)
	f.Add(judge, "application/grpc", append([]byte{0, 0, 0, 0, byte(len(binary))}, binary...))
	f.Add(lookup, "application/json", []byte(`{"scope": "orders", "id": "a"}`))
	f.Add("ClaimService/Release", "application/grpc-web+json",
		[]byte("\x00\x00\x00\x00\x02{}"))
	f.Add("IdempotencyService/Begin", "application/json", []byte(`{"scope": "orders", "key": "k",
		"requestHash": "LPJNul+wow4m6DsqxbninhsWHlwfp0JecwQzYpOLmCQ=", "hold": "1s", "wait": "0s"}`))
	for _, ending := range []string{"Complete", "Fail", "Extend"} {
		f.Add("IdempotencyService/"+ending, "application/json",
			[]byte(`{"scope": "orders", "key": "k", "lease": "AAAA"}`))
	}
	store := memory.New(memory.Options{Violation: f.Errorf})
	scope := scopeNamed("orders")
	if err := store.Register(f.Context(), scope); err != nil {
		f.Fatal(err)
	}
	limits := testLimits
	limits.Bytes, limits.Batch = 1<<16, 100
	limits.Wait = time.Second
	o := Options{Store: store, Limits: limits, Logger: quiet(), Keys: keysmemory.New(),
		Metrics: NewMetrics(prometheus.NewRegistry()),
		Scopes:  func(name string) (dedup.Scope, bool) { return scope, name == "orders" }}
	probes, services, err := routes(o)
	if err != nil {
		f.Fatal(err)
	}
	handler := newGuard(o, true).protect(probes, services)
	send := func(method, contentType string, body []byte) *httptest.ResponseRecorder {
		request := httptest.NewRequest(http.MethodPost, "/", bytes.NewReader(body))
		request.Host, request.URL.Path = "localhost", "/kdedup.v1."+method
		request.Header.Set("Content-Type", contentType)
		answer := httptest.NewRecorder()
		handler.ServeHTTP(answer, request)
		return answer
	}
	if answer := send(judge, "application/json", asJSON); answer.Code != http.StatusOK {
		f.Fatalf("no request gets as far as the store: %d %s", answer.Code, answer.Body)
	}
	f.Fuzz(func(t *testing.T, method, contentType string, body []byte) {
		answer := send(method, contentType, body)
		if answer.Code == http.StatusInternalServerError {
			t.Fatalf("%s, %s: %q: %s", method, contentType, body, answer.Body)
		}
		if method != judge || answer.Code != http.StatusOK || contentType != "application/proto" {
			return
		}
		var asked kdedupv1.JudgeRequest
		var told kdedupv1.JudgeResponse
		if proto.Unmarshal(body, &asked) != nil ||
			proto.Unmarshal(answer.Body.Bytes(), &told) != nil {
			t.Fatalf("an answer to %q that is none: %q", body, answer.Body)
		}
		if len(asked.GetMessages()) != len(told.GetJudgements()) {
			t.Errorf("%d judgements of %d messages", len(told.GetJudgements()),
				len(asked.GetMessages()))
		}
		for _, j := range told.GetJudgements() {
			if j.GetVerdict() == kdedupv1.Verdict_VERDICT_UNSPECIFIED {
				t.Errorf("a message was not judged: %q", body)
			}
		}
	})
}

// Two places that differ have different coordinates, and one of text is never that of a record.
func FuzzPlace(f *testing.F) {
	f.Add("orders", "1", int32(0), int64(1), "orders", "2", int32(0), int64(1))
	f.Fuzz(func(t *testing.T, topicA, textA string, partitionA int32, offsetA int64,
		topicB, textB string, partitionB int32, offsetB int64) {
		type place struct {
			topic     string
			partition int32
			offset    int64
		}
		a, b := place{topicA, partitionA, offsetA}, place{topicB, partitionB, offsetB}
		read := func(p place) (dedup.Coordinates, error) {
			return new(topics).placeOf(&kdedupv1.Place{Place: &kdedupv1.Place_Record{
				Record: &kdedupv1.Record{Topic: p.topic, Partition: p.partition,
					Offset: p.offset}}})
		}
		first, errA := read(a)
		second, errB := read(b)
		if errA == nil && errB == nil && first.Same(second) != (a == b) {
			t.Errorf("%v and %v: %+v and %+v", a, b, first, second)
		}
		third, errC := new(topics).placeOf(text(textA))
		fourth, errD := new(topics).placeOf(text(textB))
		if errC == nil && errD == nil && third.Same(fourth) != (textA == textB) {
			t.Errorf("%q and %q: %+v and %+v", textA, textB, third, fourth)
		}
		if errA == nil && errC == nil && first.Same(third) {
			t.Errorf("%v and %q are both %+v", a, textA, first)
		}
	})
}
