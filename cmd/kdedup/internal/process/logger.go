package process

import (
	"io"
	"log/slog"

	"github.com/kdedup/kdedup/config"
)

// NewLogger writes lines from a level on that may be changed while it is in use. Each text of a
// line passes through naming first, unless that is nil.
func NewLogger(
	c config.Log, to io.Writer, naming func(string) string,
) (*slog.Logger, *slog.LevelVar) {
	level := new(slog.LevelVar)
	level.Set(levelOf(c))
	options := &slog.HandlerOptions{Level: level}
	if naming != nil {
		options.ReplaceAttr = func(_ []string, a slog.Attr) slog.Attr { return renamed(a, naming) }
	}
	if c.Format == "json" {
		return slog.New(slog.NewJSONHandler(to, options)), level
	}
	return slog.New(slog.NewTextHandler(to, options)), level
}

func renamed(a slog.Attr, naming func(string) string) slog.Attr {
	switch a.Value.Kind() {
	case slog.KindString:
		a.Value = slog.StringValue(naming(a.Value.String()))
	case slog.KindAny:
		if err, ok := a.Value.Any().(error); ok {
			a.Value = slog.StringValue(naming(err.Error()))
		}
	}
	return a
}

func levelOf(c config.Log) (level slog.Level) {
	if err := level.UnmarshalText([]byte(c.Level)); err != nil {
		panic(err) // config has checked the level
	}
	return level
}
