package httpidempotency_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/kdedup/kdedup/idempotency"
	"github.com/kdedup/kdedup/idempotency/httpidempotency"
	"github.com/kdedup/kdedup/idempotency/memory"
)

// The second request is the retry of a client that did not get the response to its first.
func ExampleNew() {
	executor, err := idempotency.New(memory.New(), idempotency.Options{})
	if err != nil {
		panic(err)
	}
	protect, err := httpidempotency.New(executor, httpidempotency.Options{
		Namespace: func(r *http.Request) (string, error) { return r.Header.Get("X-Customer"), nil },
	})
	if err != nil {
		panic(err)
	}
	payments := 0
	handler := protect(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		payments++
		w.WriteHeader(http.StatusCreated)
		fmt.Fprintf(w, "payment %d", payments)
	}))
	for range 2 {
		r := httptest.NewRequest(http.MethodPost, "/payments", nil)
		r.Header.Set("X-Customer", "ann")
		r.Header.Set(httpidempotency.Header, `"8e03978e-40d5-43e8-bc93-6894a57f9324"`)
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		fmt.Printf("%d %s, replayed: %q\n", w.Code, w.Body,
			w.Header().Get(httpidempotency.ReplayedHeader))
	}
	// Output:
	// 201 payment 1, replayed: ""
	// 201 payment 1, replayed: "true"
}
