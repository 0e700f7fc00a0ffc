package httpidempotency

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/kdedup/kdedup/idempotency"
)

// Options need a Namespace; the rest may be left zero.
type Options struct {
	// Namespace returns whose keys a request uses: the authenticated principal, and perhaps the
	// operation. Two clients in one namespace who choose the same key get each other's responses.
	// An error is answered with 401. It may have at most idempotency.MaxNamespace bytes.
	Namespace func(*http.Request) (string, error)

	// Methods are those that are protected; others pass. Default POST and PATCH.
	Methods []string
	// Optional lets requests without a key pass, unprotected. Otherwise they get 400.
	Optional bool
	// UnquotedKeys also takes keys that are no structured-field strings, as in
	// Idempotency-Key: 8e03978e-40d5-43e8-bc93-6894a57f9324, which many clients send.
	UnquotedKeys bool
	// Wait is how long a request waits for another with its key before it gets 409. Default: not
	// at all. It counts instead of the executor's.
	Wait time.Duration
	// MaxRequest is the largest body, in bytes; larger ones get 413. Default 1 MiB. Bodies are held
	// in memory.
	MaxRequest int64
	// ReusedStatus answers a key that was used with another request. Default 422, as the draft
	// says: 409 means there that the same request may be repeated later, which would never help.
	// Set 409 for clients that expect it.
	ReusedStatus int
	// Record reports whether a response with this status is recorded. Default: those below 500, but
	// not those that the same request may not get later: 408, 425 and 429 ask for a retry; 401,
	// 403, 407, 421 and 423 end with a login, a right, a route or a lock.
	Record func(status int) bool
	// DropHeaders are not recorded, beside those in the package's documentation.
	DropHeaders []string
	// Docs is a URL that documents the use of keys; it becomes the type of problem details.
	Docs string
	// Logger gets responses that could not be recorded, and errors of the store. Nil: nothing is
	// logged.
	Logger *slog.Logger
}

func (o Options) withDefaults() Options {
	if o.Methods == nil {
		o.Methods = []string{http.MethodPost, http.MethodPatch}
	}
	if o.Wait == 0 {
		o.Wait = idempotency.NoWait
	}
	if o.MaxRequest == 0 {
		o.MaxRequest = 1 << 20
	}
	if o.ReusedStatus == 0 {
		o.ReusedStatus = http.StatusUnprocessableEntity
	}
	if o.Record == nil {
		o.Record = isLasting
	}
	if o.Docs == "" {
		o.Docs = "about:blank"
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}

func (o Options) validate() error {
	var errs []error
	if o.Namespace == nil {
		errs = append(errs, fmt.Errorf("%s: must be set; return a constant if all clients are one",
			"Namespace"))
	}
	if o.MaxRequest < 0 {
		errs = append(errs, fmt.Errorf("MaxRequest: must be positive, got %d", o.MaxRequest))
	}
	if o.ReusedStatus < 400 || o.ReusedStatus > 499 {
		errs = append(errs, fmt.Errorf("ReusedStatus: must be 400 to 499, got %d", o.ReusedStatus))
	}
	return errors.Join(errs...)
}

// isLasting is the default of Options.Record.
func isLasting(status int) bool {
	switch status {
	case http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests,
		http.StatusUnauthorized, http.StatusForbidden, http.StatusProxyAuthRequired,
		http.StatusMisdirectedRequest, http.StatusLocked:
		return false
	}
	return status < http.StatusInternalServerError
}
