// Package build knows which version of kdedup this is, and how it was built.
package build

import (
	"runtime"
	"runtime/debug"
	"time"
)

// version is set by the linker for releases.
var version = ""

// Info is what is known about this binary. The Go tool records the commit where it finds one.
type Info struct {
	Version  string     `json:"version"`
	Module   string     `json:"module"`
	Revision string     `json:"revision,omitempty"`
	Time     *time.Time `json:"time,omitempty"` // of the commit
	Modified *bool      `json:"modified,omitempty"`
	Go       string     `json:"go"`
	Platform string     `json:"platform"`
}

// This is the binary that runs.
func This() Info {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = &debug.BuildInfo{}
	}
	return Of(info)
}

// Of reads what the Go tool has recorded.
func Of(info *debug.BuildInfo) Info {
	b := Info{Version: version, Module: info.Main.Path, Go: runtime.Version(),
		Platform: runtime.GOOS + "/" + runtime.GOARCH}
	if b.Version == "" {
		b.Version = info.Main.Version
	}
	if b.Version == "" {
		b.Version = "(devel)"
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Revision = s.Value
		case "vcs.modified":
			modified := s.Value == "true"
			b.Modified = &modified
		case "vcs.time":
			if at, err := time.Parse(time.RFC3339, s.Value); err == nil {
				b.Time = &at
			}
		}
	}
	return b
}

// Short is the revision on the status page.
func (b Info) Short() string {
	text := b.Revision[:min(len(b.Revision), 12)]
	if text != "" && b.Modified != nil && *b.Modified {
		text += ", changed"
	}
	return text
}

// Version is what the release calls this binary, or its module's version.
func Version() string { return This().Version }
