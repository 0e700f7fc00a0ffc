package cassandra

import (
	"errors"
	"strings"

	"github.com/gocql/gocql"
)

// Unreachable reports whether an error of Open says that the nodes do not answer, or not enough of them: time may mend
// that, and no other setting is needed. The driver keeps only the text of why it could not connect.
func Unreachable(err error) bool {
	for _, outage := range []error{gocql.ErrNoConnections, gocql.ErrTimeoutNoResponse, gocql.ErrConnectionClosed, gocql.ErrUnavailable} {
		if errors.Is(err, outage) {
			return true
		}
	}
	var (
		unavailable *gocql.RequestErrUnavailable
		read        *gocql.RequestErrReadTimeout
		write       *gocql.RequestErrWriteTimeout
	)
	if errors.As(err, &unavailable) || errors.As(err, &read) || errors.As(err, &write) {
		return true
	}
	if err == nil || !strings.Contains(err.Error(), "gocql: unable to create session") {
		return false
	}
	for _, text := range []string{
		"connection refused", "connection reset", "i/o timeout", "no such host", "no route to host", "network is unreachable",
		"server misbehaving", "broken pipe", "no response received",
	} {
		if strings.Contains(err.Error(), text) {
			return true
		}
	}
	return false
}
