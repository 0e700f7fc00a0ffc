package cassandra

import (
	"context"
	"errors"
	"strings"

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

// explain adds the remedy to errors that a first start meets.
func explain(err error, keyspace string) error {
	text := err.Error()
	switch {
	case strings.Contains(text, "Keyspace '"+keyspace+"' does not exist"), strings.Contains(text, "keyspace does not exist"):
		return &missingError{what: "keyspace " + keyspace, err: err}
	case strings.Contains(text, "unconfigured table"), strings.Contains(text, "does not exist"):
		return &missingError{what: "a table of keyspace " + keyspace, err: err}
	}
	return err
}

// missingError is a part of the schema that setup creates.
type missingError struct {
	what string
	err  error
}

func (e *missingError) Error() string {
	return e.what + " does not exist; create it with: kdedup setup -c FILE"
}

func (e *missingError) Unwrap() error { return e.err }
