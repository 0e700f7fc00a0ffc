package main

import (
	"io"
	"log/slog"

	"github.com/kdedup/kdedup/config"
)

func newLogger(c config.Log, to io.Writer) *slog.Logger {
	var level slog.Level
	if err := level.UnmarshalText([]byte(c.Level)); err != nil {
		panic(err) // config has checked the level
	}
	options := &slog.HandlerOptions{Level: level}
	if c.Format == "json" {
		return slog.New(slog.NewJSONHandler(to, options))
	}
	return slog.New(slog.NewTextHandler(to, options))
}
