package idempotency_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/kdedup/kdedup/idempotency"
	"github.com/kdedup/kdedup/idempotency/memory"
)

// A retry gets the response of the first call.
func ExampleExecutor_Execute() {
	executor, err := idempotency.New(memory.New(), idempotency.Options{})
	if err != nil {
		panic(err)
	}
	pay := func(ctx context.Context) ([]byte, error) {
		fmt.Println("paying")
		return []byte("receipt 7"), nil
	}
	key := idempotency.Key{Namespace: "payments/ann", ID: "8e03978e"}
	request := []byte(`{"amount": 10, "to": "bob"}`)
	for range 2 {
		result, err := executor.Execute(context.Background(), key, idempotency.HashOf(request), pay)
		fmt.Printf("%s, replayed: %t, error: %v\n", result.Response, result.Replayed, err)
	}
	// Output:
	// paying
	// receipt 7, replayed: false, error: <nil>
	// receipt 7, replayed: true, error: <nil>
}

// Requests and responses of any type.
func ExampleExecuteJSON() {
	type Order struct {
		Amount int
		To     string
	}
	type Receipt struct{ Number int }

	executor, err := idempotency.New(memory.New(), idempotency.Options{})
	if err != nil {
		panic(err)
	}
	key := idempotency.Key{Namespace: "payments/ann", ID: "8e03978e"}
	pay := func(context.Context) (Receipt, error) { return Receipt{Number: 7}, nil }

	receipt, replayed, err := idempotency.ExecuteJSON(context.Background(), executor, key,
		Order{10, "bob"}, pay)
	fmt.Println(receipt.Number, replayed, err)
	receipt, replayed, err = idempotency.ExecuteJSON(context.Background(), executor, key,
		Order{10, "bob"}, pay)
	fmt.Println(receipt.Number, replayed, err)
	_, _, err = idempotency.ExecuteJSON(context.Background(), executor, key, Order{10, "eve"}, pay)
	fmt.Println(errors.Is(err, idempotency.ErrKeyReused))
	// Output:
	// 7 false <nil>
	// 7 true <nil>
	// true
}

// A final error is every later caller's, too. After another error the function runs again.
func ExampleFinal() {
	executor, err := idempotency.New(memory.New(), idempotency.Options{})
	if err != nil {
		panic(err)
	}
	key := idempotency.Key{Namespace: "payments/ann", ID: "8e03978e"}
	outcomes := []error{errors.New("connection refused"),
		idempotency.Final(errors.New("card declined"))}
	for n := range 3 {
		_, err := executor.Execute(context.Background(), key, idempotency.HashOf(nil),
			func(context.Context) ([]byte, error) {
				return nil, outcomes[n]
			})
		fmt.Printf("%v, for good: %t\n", err, errors.Is(err, idempotency.ErrFailed))
	}
	// Output:
	// connection refused, for good: false
	// card declined, for good: true
	// card declined, for good: true
}

// account is a resource that remembers the largest fencing token it has seen, and so refuses an
// execution whose lease was lost.
type account struct{ token int64 }

func (a *account) withdraw(token int64) error {
	if token < a.token {
		return errors.New("a later execution was here before")
	}
	a.token = token
	return nil
}

// The fencing token protects a resource from an owner that lost its lease and does not know it yet.
func ExampleToken() {
	executor, err := idempotency.New(memory.New(), idempotency.Options{})
	if err != nil {
		panic(err)
	}
	anns := &account{}
	var lost int64
	for range 2 {
		_, _ = executor.Execute(context.Background(), idempotency.Key{Namespace: "payments",
			ID: "1"}, idempotency.HashOf(nil), func(ctx context.Context) ([]byte, error) {
			token, _ := idempotency.Token(ctx)
			if lost == 0 {
				lost = token
			}
			fmt.Println("withdrawn:", anns.withdraw(token) == nil)
			return nil, errors.New("and now again")
		})
	}
	fmt.Println("the first one once more:", anns.withdraw(lost))
	// Output:
	// withdrawn: true
	// withdrawn: true
	// the first one once more: a later execution was here before
}
