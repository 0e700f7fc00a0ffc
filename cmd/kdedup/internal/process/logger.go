package process

import (
	"io"
	"log/slog"

	"github.com/kdedup/kdedup/config"
)

// NewLogger writes lines from a level on that may be changed while it is in use.
func NewLogger(c config.Log, to io.Writer) (*slog.Logger, *slog.LevelVar) {
	level := new(slog.LevelVar)
	level.Set(levelOf(c))
	options := &slog.HandlerOptions{Level: level}
	if c.Format == "json" {
		return slog.New(slog.NewJSONHandler(to, options)), level
	}
	return slog.New(slog.NewTextHandler(to, options)), level
}

func levelOf(c config.Log) (level slog.Level) {
	if err := level.UnmarshalText([]byte(c.Level)); err != nil {
		panic(err) // config has checked the level
	}
	return level
}
