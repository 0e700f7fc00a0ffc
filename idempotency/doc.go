// Package idempotency runs a function once per key and gives its response to every caller of that
// key: the retry of a payment gets the receipt of the payment, and pays nothing.
//
//	executor, err := idempotency.New(store, idempotency.Options{})
//	…
//	result, err := executor.Execute(ctx, idempotency.Key{Namespace: "payments", ID: id}, idempotency.HashOf(body),
//		func(ctx context.Context) ([]byte, error) { return pay(ctx, body) })
//
// [ExecuteJSON] does the same for requests and responses of any type. Package httpidempotency puts
// it in front of an [net/http.Handler], by the header Idempotency-Key.
//
// # What a key goes through
//
//	                         the function returned a response
//	              ┌─────────┐ ─────────────────────────────────► ┌───────────┐
//	 first caller │         │                                    │ completed │ ──┐
//	─────────────►│ started │        … an error that is Final    └───────────┘   │ TTL
//	              │         │ ─────────────────────────────────► ┌───────────┐   ├────► forgotten
//	              └─────────┘                                    │  failed   │ ──┤
//	               │  ▲ ▲ ▲                                      └───────────┘   │
//	               │  │ │ │   next caller                        ┌───────────┐   │
//	               │  │ │ └───────────────────────────────────── │ released  │ ──┘
//	       renewed │  │ │                                        └───────────┘
//	               └──┘ └── taken over: the owner                      ▲
//	                        did not renew for one lease                │
//	              started ─────────────────────────────────────────────┘
//	                         the function returned another error, or panicked
//
// The caller that finds a key free becomes its owner and runs the function. Completed and failed
// are final: later callers get the stored response, or the text of the failure, and run nothing.
// While a key is started, other callers wait or get [ErrInProgress], as [Options].Wait says. A
// caller who brings the same key with another request gets [ErrKeyReused], whatever the state.
//
// # What is promised
//
// For one key, from its first use until its TTL after its last change:
//
//   - At most one execution is recorded. Every caller that gets a response gets the recorded one, or
//     an error that says so ([UnrecordedError]).
//   - A function that returned a response or a final error, and whose outcome was recorded, does not
//     run again.
//   - Two functions never both hold the key. Each execution has a fencing token, larger than those of
//     all executions of the key before it.
//
// A function runs again in four cases only:
//
//   - it failed, and the failure was not final;
//   - its process died, or could not reach the store for one lease: then the next caller takes over.
//     The old owner, should it still run, sees its context cancelled with [ErrLeaseLost] as the cause,
//     and what it returns is refused;
//   - it succeeded, and its outcome could not be stored: its caller is told, by [UnrecordedError];
//   - the store forgot: the TTL is over, or the store lost a write that it had acknowledged. What a
//     store survives is in the documentation of its package.
//
// No store can take back what a function did to the world. A function that died after it paid, and
// before that was recorded, is run again. So let it hand the key to whom it pays, if that party
// takes idempotency keys; or let the resource keep the largest fencing token it has seen ([Token])
// and refuse smaller ones, in the transaction that changes it. That also stops an old owner that
// was suspended in the middle and wakes up.
//
// # Leases and clocks
//
// An owner renews its key three times per [Options].Lease. A caller that waits takes the key over
// when it has seen the very same renewal for one whole lease, by its own clock; the owner gives up
// when its last renewal is older than one lease, by its own clock. Both measure a duration. No time
// of one machine is compared with the time of another, so clocks may be wrong; only their rates
// must agree. The price: after an owner died, the first caller to come waits for one lease, however
// long ago that was. TTLs are measured by the store.
//
// # Failures
//
// An error releases the key: the next caller runs the function again. [Final] marks an error that
// every later caller shall get too, such as a card that was declined. An error says that the work
// may be repeated. A function that does not know whether it paid must find out, or return a Final
// error. With [Options].FailuresAreFinal it is the other way round, and [Retryable] marks what may
// be repeated. A panic counts as an unmarked error, and goes on to the caller.
package idempotency
