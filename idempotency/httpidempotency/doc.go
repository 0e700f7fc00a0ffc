// Package httpidempotency makes an [net/http.Handler] safe to retry: a request with the header
// Idempotency-Key is handled once, and later requests with the same key get the recorded response.
// It follows draft-ietf-httpapi-idempotency-key-header-07.
//
//	executor, err := idempotency.New(store, idempotency.Options{})
//	…
//	protect, err := httpidempotency.New(executor, httpidempotency.Options{Namespace: customer})
//	…
//	mux.Handle("POST /payments", protect(payments))
//
// Put it behind authentication, which Options.Namespace relies on, and inside of what compresses.
//
// # What clients see
//
//	400  the header is missing, not a structured-field string, empty, or too long
//	409  another request with the key is being handled; Retry-After says when to come back. Also when
//	     this one's response lost against that of a process that took its key over
//	410  the request was handled, and its response was too large to be kept
//	413  the request's body is too large to be compared with that of a retry
//	422  the key was used with another method, path, query, Content-Type or body; see Options.ReusedStatus
//	500  an earlier attempt failed for good
//	503  the store cannot be asked; nothing was done
//
// These are problem details (RFC 9457). A replayed response has the header Idempotent-Replayed:
// true.
//
// # What is recorded
//
// The status, the body, and the headers that the handler set or changed. Never recorded, though the
// first client gets them: Set-Cookie, because a session must not be handed out twice, nor lie in
// the store; Date and Content-Length, which are made again; hop-by-hop headers (RFC 9110, 7.6.1)
// and trailers; and Options.DropHeaders. Informational responses (1xx) are dropped.
//
// A response is held back until it is recorded, so handlers cannot flush it or hijack the
// connection: the writer that they get has neither, nor Unwrap. From Executor.MaxResponse bytes on
// a response is passed through instead. The key is then completed without the body, and retries get
// 410.
//
// Responses with a status of 500 and more, and 401, 403, 407, 408, 421, 423, 425 and 429, are sent
// and not recorded: the next request with the key is handled again. Options.Record decides
// otherwise. A handler that may have done its work before it failed should answer with another
// status, or be recorded.
//
// A handler is not cancelled when its client goes away: the client's retry gets the response. A
// deadline of the request's context still holds. When the lease is lost, the context is cancelled
// with [idempotency.ErrLeaseLost]; [idempotency.Token] gives the fencing token. A panic releases
// the key and goes on.
//
// If the response cannot be recorded, the client gets it nevertheless, and the Logger an error.
package httpidempotency
