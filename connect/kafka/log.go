package kafka

import (
	"context"
	"log/slog"
	"slices"
	"strings"
)

// demoted lowers the client's levels by one step: it calls every transaction and every rebalance
// worth an info line.
type demoted struct{ slog.Handler }

func demote(log *slog.Logger) *slog.Logger {
	return slog.New(demoted{log.Handler()}).With("from", "kafka client")
}

func lower(level slog.Level) slog.Level {
	switch {
	case level >= slog.LevelError:
		return slog.LevelWarn
	case level >= slog.LevelWarn:
		return slog.LevelInfo
	default:
		return slog.LevelDebug
	}
}

// Enabled implements slog.Handler.
func (d demoted) Enabled(ctx context.Context, level slog.Level) bool {
	return d.Handler.Enabled(ctx, lower(level))
}

// attempts begin the lines about one attempt to connect or to join a group. The client tries
// without end. Of connections sight tells the first failure and the end; what keeps a group from
// being joined reaches the lane as an error.
var attempts = []string{
	"group manage loop errored",
	"unable to open connection to broker", "unable to request api versions",
	"unable to initialize sasl", "read from broker errored", "read from broker received EOF",
}

// Handle implements slog.Handler.
func (d demoted) Handle(ctx context.Context, r slog.Record) error {
	r.Level = lower(r.Level)
	if slices.ContainsFunc(attempts, func(start string) bool {
		return strings.HasPrefix(r.Message, start)
	}) {
		r.Level = slog.LevelDebug
	}
	if !d.Handler.Enabled(ctx, r.Level) {
		return nil
	}
	return d.Handler.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (d demoted) WithAttrs(attrs []slog.Attr) slog.Handler {
	return demoted{d.Handler.WithAttrs(attrs)}
}

// WithGroup implements slog.Handler.
func (d demoted) WithGroup(name string) slog.Handler { return demoted{d.Handler.WithGroup(name)} }
