package redis

import (
	"context"
	"errors"
	"fmt"
	"time"

	goredis "github.com/redis/go-redis/v9"
)

// replicasError says that claims were made and too few replicas have them.
type replicasError struct {
	got    int64
	want   int
	within time.Duration
}

func (e *replicasError) Error() string {
	return fmt.Sprintf("%d of %d replicas had the claims within %v", e.got, e.want, e.within)
}

// explain counts an error, adds the remedy where there is one, and says so when it is the caller's
// context that ended: the driver then tells of a socket.
func (s *Store) explain(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	s.metrics.failures.WithLabelValues(reasonOf(err)).Inc()
	deadline, limited := ctx.Deadline()
	switch {
	case goredis.HasErrorPrefix(err, "OOM"):
		return fmt.Errorf("the server is full and keeps the claims that it has: raise maxmemory, "+
			"or claim with a shorter ttl: %w", err)
	case ctx.Err() != nil && !errors.Is(err, context.Cause(ctx)):
		return fmt.Errorf("%w: %w", context.Cause(ctx), err)
	case ctx.Err() == nil && limited && !time.Now().Before(deadline): // the socket noticed first
		return fmt.Errorf("%w: %w", context.DeadlineExceeded, err)
	}
	return err
}

// Reasons of failures, as a label.
const (
	reasonFull     = "full"
	reasonReplicas = "replicas"
	reasonRefused  = "refused"
	reasonNoAnswer = "no_answer"
)

func reasonOf(err error) string {
	var (
		replicas *replicasError
		refused  goredis.Error
	)
	switch {
	case goredis.HasErrorPrefix(err, "OOM"):
		return reasonFull
	case errors.As(err, &replicas):
		return reasonReplicas
	case errors.As(err, &refused):
		return reasonRefused
	}
	return reasonNoAnswer
}
