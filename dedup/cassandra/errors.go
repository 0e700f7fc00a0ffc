package cassandra

import (
	"context"
	"errors"

	"github.com/gocql/gocql"
)

// isOverload reports whether the error says that the cluster is asked too much: timeouts of every
// kind, also those of a Paxos round that lost against another one, and refusals.
func isOverload(err error) bool {
	var (
		writeTimeout *gocql.RequestErrWriteTimeout
		readTimeout  *gocql.RequestErrReadTimeout
		unknown      *gocql.RequestErrCASWriteUnknown
		frame        gocql.RequestError
	)
	switch {
	case errors.Is(err, gocql.ErrTimeoutNoResponse), errors.Is(err, context.DeadlineExceeded):
		return true
	case errors.As(err, &writeTimeout), errors.As(err, &readTimeout), errors.As(err, &unknown):
		return true
	case errors.As(err, &frame):
		return frame.Code() == gocql.ErrCodeOverloaded || frame.Code() == gocql.ErrCodeBootstrapping
	}
	return false
}

// Overloaded reports whether an error of a statement says that the cluster did not decide it in
// time, or did not take it. It may have been carried out.
func Overloaded(err error) bool { return isOverload(err) }

// Missing reports whether an error of Open or Connect says that setup has not run.
func Missing(err error) bool {
	_, is := errors.AsType[*missingError](err)
	return is
}

// Unauthorized reports whether an error says that the user lacks a right.
func Unauthorized(err error) bool { return isUnauthorized(err) }

// missingError is a part of the schema that setup creates.
type missingError struct{ what string }

func (e *missingError) Error() string {
	return e.what + " does not exist; create it with: kdedup setup -c FILE"
}
