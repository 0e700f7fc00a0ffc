package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
)

// Classes and codes of errors, see appendix A of PostgreSQL's manual.
const (
	serializationFailure = "40001"
	deadlockDetected     = "40P01"
	readOnlyTransaction  = "25006"
	undefinedDatabase    = "3D000"
	undefinedTable       = "42P01"
	invalidSchema        = "3F000"
	noPrivilege          = "42501"
	protocolViolation    = "08P01"
)

// isNotApplied reports whether the server undid the statement for the sake of another one. Of every
// other error it is left open here what it did.
func isNotApplied(err error) bool {
	code := codeOf(err)
	return code == serializationFailure || code == deadlockDetected
}

func codeOf(err error) string {
	if server, ok := errors.AsType[*pgconn.PgError](err); ok {
		return server.Code
	}
	return ""
}

// explain adds the remedy to errors that a user can fix, and why the caller's context ended.
func explain(ctx context.Context, err error) error {
	switch codeOf(err) {
	case undefinedDatabase:
		return fmt.Errorf("%w; create it with: createdb, or name another one", err)
	case undefinedTable, invalidSchema:
		return fmt.Errorf("%w; create it with: kdedup setup -c FILE", err)
	case readOnlyTransaction:
		return fmt.Errorf("%w; the server is no primary any more, the next connections look for "+
			"one among store.postgres.hosts", err)
	case protocolViolation: // what pgbouncer says
		if strings.Contains(err.Error(), "statement pooling") {
			return fmt.Errorf("%w; set pool_mode = transaction in pgbouncer, or session", err)
		}
	case noPrivilege:
		return fmt.Errorf("%w; docs/stores.md lists the rights that are needed", err)
	}
	if cause := context.Cause(ctx); cause != nil && !errors.Is(err, cause) {
		return fmt.Errorf("%w: %w", cause, err)
	}
	return err
}

// missingError is a part of the schema that setup creates.
type missingError struct{ what string }

func (e *missingError) Error() string {
	return e.what + " does not exist; create it with: kdedup setup -c FILE"
}

// unfitError says why the server or a table cannot keep the promise.
type unfitError struct{ text string }

func (e *unfitError) Error() string { return e.text }

func unfit(format string, values ...any) error {
	return &unfitError{fmt.Sprintf(format, values...)}
}

// isUnfit tells what was found from that nothing could be found out.
func isUnfit(err error) bool {
	_, missing := errors.AsType[*missingError](err)
	_, is := errors.AsType[*unfitError](err)
	return is || missing
}
