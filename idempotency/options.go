package idempotency

import (
	"errors"
	"fmt"
	"log/slog"
	"time"
)

// NoWait as Options.Wait makes a caller return at once when the key is in use.
const NoWait time.Duration = -1

// Options may all be left zero.
type Options struct {
	// TTL is how long a key lives after its last change: its completion, failure or release, or
	// the last renewal of an owner that died. Default 24 hours. Choose it longer than any caller
	// repeats its request, and longer than the lease.
	TTL time.Duration
	// NamespaceTTL, if not nil, gives the TTL of a namespace; zero stands for TTL.
	NamespaceTTL func(namespace string) time.Duration

	// Lease is how long an owner may be silent before another caller takes its key over. It is
	// renewed while the function runs, however long that is. Default 30 seconds; at least 10 ms.
	// Pauses of the process and short outages of the store should be shorter.
	Lease time.Duration
	// Wait is how long a caller waits while another one's function runs under its key. Zero: as
	// long as its context lives. NoWait: not at all. When it is over, the call ends with
	// ErrInProgress.
	Wait time.Duration
	// Poll is the longest pause between two looks at a key that is waited for. The first look
	// comes after 10 ms, and the pause doubles. Default 500 ms.
	Poll time.Duration
	// StoreTimeout is how long the executor insists on an answer of the store before and after the
	// function: it repeats what failed. Default 10 seconds.
	StoreTimeout time.Duration

	// MaxResponse is the largest response that is kept, in bytes. Default 1 MiB. See
	// ErrResponseTooLarge.
	MaxResponse int
	// FailuresAreFinal makes unmarked errors, and panics, final.
	FailuresAreFinal bool

	// Logger gets lost leases, and releases that failed. Nil: nothing is logged.
	Logger *slog.Logger
}

const shortestLease = 10 * time.Millisecond

// The text of a failure is cut to this, in bytes.
const maxFailure = 4096

func (o Options) withDefaults() Options {
	setDefault(&o.TTL, 24*time.Hour)
	setDefault(&o.Lease, 30*time.Second)
	setDefault(&o.Poll, 500*time.Millisecond)
	setDefault(&o.StoreTimeout, 10*time.Second)
	setDefault(&o.MaxResponse, 1<<20)
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

func (o Options) validate() error {
	var errs []error
	check := func(ok bool, field, must string, got any) {
		if !ok {
			errs = append(errs, fmt.Errorf("%s: must be %s, got %v", field, must, got))
		}
	}
	check(o.Lease >= shortestLease, "Lease", "at least 10ms", o.Lease)
	check(o.Lease%time.Millisecond == 0, "Lease", "whole milliseconds", o.Lease)
	check(o.TTL >= o.Lease, "TTL", "at least the lease", o.TTL)
	check(o.Wait >= NoWait, "Wait", "positive, zero or NoWait", o.Wait)
	check(o.Poll > 0, "Poll", "positive", o.Poll)
	check(o.StoreTimeout > 0, "StoreTimeout", "positive", o.StoreTimeout)
	check(o.MaxResponse > 0, "MaxResponse", "positive", o.MaxResponse)
	return errors.Join(errs...)
}

// ttl returns that of a namespace. It is never shorter than the lease, after which a dead owner is
// replaced: that must find the record, which has the fencing token.
func (o *Options) ttl(namespace string) time.Duration {
	if o.NamespaceTTL != nil {
		if ttl := o.NamespaceTTL(namespace); ttl > 0 {
			return max(ttl, o.Lease)
		}
	}
	return o.TTL
}
