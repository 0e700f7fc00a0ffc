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
	options.ReplaceAttr = func(_ []string, a slog.Attr) slog.Attr {
		if says(a.Value) {
			return renamed(a, naming)
		}
		return slog.Attr{} // it is left out
	}
	if c.Format == "json" {
		return slog.New(slog.NewJSONHandler(to, options)), level
	}
	return slog.New(slog.NewTextHandler(to, options)), level
}

// says reports whether a reader learns something from a field.
func says(v slog.Value) bool {
	switch v.Kind() {
	case slog.KindString:
		return v.String() != ""
	case slog.KindAny:
		list, ok := v.Any().([]string)
		return v.Any() != nil && (!ok || len(list) > 0)
	}
	return true
}

func renamed(a slog.Attr, naming func(string) string) slog.Attr {
	if naming == nil {
		return a
	}
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
