package postgres

import (
	"errors"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
)

// Unreachable reports whether an error of Open is the answer of a server that does not serve now:
// it starts, stops, is a standby, or has no connection to spare.
func Unreachable(err error) bool {
	var answer *pgconn.PgError
	if !errors.As(err, &answer) {
		return false
	}
	return strings.HasPrefix(answer.Code, "57P0") || answer.Code == "53300" ||
		answer.Code == "25006"
}
