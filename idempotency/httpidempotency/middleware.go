package httpidempotency

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/kdedup/kdedup/idempotency"
)

// middleware protects one handler.
type middleware struct {
	Options
	executor *idempotency.Executor
	drop     map[string]bool
	next     http.Handler
}

// New returns a function that protects handlers.
func New(executor *idempotency.Executor, options Options) (func(http.Handler) http.Handler, error) {
	options = options.withDefaults()
	if err := options.validate(); err != nil {
		return nil, fmt.Errorf("httpidempotency options: %w", err)
	}
	drop := make(map[string]bool)
	for _, name := range slices.Concat(neverRecorded, options.DropHeaders) {
		drop[http.CanonicalHeaderKey(name)] = true
	}
	executor = executor.WithWait(options.Wait)
	return func(next http.Handler) http.Handler {
		return &middleware{Options: options, executor: executor, drop: drop, next: next}
	}, nil
}

// ServeHTTP implements http.Handler.
func (m *middleware) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !slices.Contains(m.Methods, r.Method) {
		m.next.ServeHTTP(w, r)
		return
	}
	id, err := parseKey(r.Header.Values(Header), m.UnquotedKeys)
	if errors.Is(err, errNoKey) && m.Optional {
		m.next.ServeHTTP(w, r)
		return
	}
	if err != nil {
		m.problem(http.StatusBadRequest, "Idempotency-Key is missing or invalid", err.Error()).send(
			w)
		return
	}
	namespace, err := m.Namespace(r)
	if err != nil {
		m.problem(http.StatusUnauthorized, "The owner of the Idempotency-Key is unknown",
			"").send(w)
		return
	}
	m.once(w, r, idempotency.Key{Namespace: namespace, ID: id})
}

// once handles a request unless it was handled before.
func (m *middleware) once(w http.ResponseWriter, r *http.Request, key idempotency.Key) {
	r, hash, done, err := readRequest(w, r, m.MaxRequest)
	if err != nil {
		m.unreadable(err).send(w)
		return
	}
	defer done()
	recorder := newRecorder(w, m.executor.MaxResponse())
	result, err := m.executor.Execute(r.Context(), key, hash,
		func(ctx context.Context) ([]byte, error) {
			m.next.ServeHTTP(recorder, r.WithContext(ctx))
			response := recorder.response(m.drop)
			if !m.Record(response.Status) {
				return nil, idempotency.Retryable(errNotRecorded)
			}
			return response.encode(m.executor.MaxResponse())
		})
	switch {
	case err == nil && result.Replayed:
		m.replay(w, result.Response)
	case recorder.through: // sent already
		m.report(r, err)
	case err == nil:
		recorder.send()
	default:
		m.failed(w, r, recorder, err)
	}
}

// errNotRecorded frees the key of a response that is only sent.
var errNotRecorded = errors.New("the response's status is not recorded")

func (m *middleware) unreadable(err error) problem {
	if errors.Is(err, errBodyTooLarge) {
		return m.problem(http.StatusRequestEntityTooLarge,
			"The request is too large for an Idempotency-Key",
			fmt.Sprintf("The body must have at most %d bytes.", m.MaxRequest))
	}
	return m.problem(http.StatusBadRequest, "The request could not be read", "")
}

func (m *middleware) replay(w http.ResponseWriter, recorded []byte) {
	response, err := decodeResponse(recorded)
	switch {
	case err != nil:
		m.Logger.Error("recorded response cannot be read", "error", err)
		m.problem(http.StatusInternalServerError, "The recorded response cannot be read",
			"").send(w)
	case !response.Kept:
		p := m.problem(http.StatusGone, "The response was too large to be kept",
			"The request was handled. It is not handled again.")
		p.OriginalStatus = response.Status
		p.send(w)
	default:
		response.replay(w)
	}
}

// failed answers when there is no recorded response.
func (m *middleware) failed(w http.ResponseWriter, r *http.Request, recorder *recorder, err error) {
	_, ran := errors.AsType[*idempotency.UnrecordedError](err)
	switch {
	case errors.Is(err, idempotency.ErrInProgress), errors.Is(err, idempotency.ErrLeaseLost):
		w.Header().Set("Retry-After", "1")
		m.problem(http.StatusConflict, "A request with this Idempotency-Key is in progress",
			"Repeat the request later.").send(w)
	case errors.Is(err, errNotRecorded), ran:
		m.report(r, err)
		recorder.send()
	case errors.Is(err, idempotency.ErrKeyReused):
		m.problem(m.ReusedStatus, "Idempotency-Key was used with another request",
			"Choose a new key for a new request.").send(w)
	case errors.Is(err, idempotency.ErrFailed):
		m.problem(http.StatusInternalServerError, "The request failed for good",
			"It is not handled again.").send(w)
	case errors.Is(err, idempotency.ErrInvalidKey): // the key was parsed, so it is the namespace
		m.Logger.Error("the namespace of an idempotency key is invalid", "error", err)
		m.problem(http.StatusInternalServerError, "The owner of the Idempotency-Key is invalid",
			"").send(w)
	default:
		m.Logger.Error("idempotency key was not claimed", "error", err)
		w.Header().Set("Retry-After", "1")
		m.problem(http.StatusServiceUnavailable, "The Idempotency-Key cannot be checked",
			"Nothing was done. Repeat the request later.").send(w)
	}
}

// report logs that a response which the client gets was not recorded, unless that is meant so.
func (m *middleware) report(r *http.Request, err error) {
	if err != nil && !errors.Is(err, errNotRecorded) {
		m.Logger.Error("response was not recorded",
			"method", r.Method, "path", r.URL.Path, "error", err)
	}
}
