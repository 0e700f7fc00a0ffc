package command

import (
	"encoding/json"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/kdedup/kdedup/process/build"
)

func TestAVersionTellsHowItWasBuilt(t *testing.T) {
	for _, c := range []struct {
		info     debug.BuildInfo
		json     string // without what differs from machine to machine
		revision string // on the status page
	}{
		{debug.BuildInfo{}, `{"version":"(devel)","module":"","go"`, ""},
		{
			debug.BuildInfo{Main: debug.Module{Path: "github.com/kdedup/kdedup", Version: "v1.2.3"},
				Settings: []debug.BuildSetting{
					{Key: "vcs.revision", Value: "0123456789abcdef"},
					{Key: "vcs.time", Value: "2026-11-21T10:00:00Z"},
					{Key: "vcs.modified", Value: "false"},
				}},
			`{"version":"v1.2.3","module":"github.com/kdedup/kdedup","revision":"0123456789abcdef","time":"2026-11-21T10:00:00Z","modified":false,"go"`,
			"0123456789ab",
		},
		{
			debug.BuildInfo{Settings: []debug.BuildSetting{{Key: "vcs.revision",
				Value: "0123456789abcdef"}, {Key: "vcs.modified", Value: "true"}}},
			`{"version":"(devel)","module":"","revision":"0123456789abcdef","modified":true,"go"`,
			"0123456789ab, changed",
		},
	} {
		b := build.Of(&c.info)
		got, err := json.Marshal(b)
		if err != nil || !strings.HasPrefix(string(got), c.json) {
			t.Errorf("got %s, want %s…", got, c.json)
		}
		if b.Short() != c.revision {
			t.Errorf("got the revision %q, want %q", b.Short(), c.revision)
		}
	}
}

func TestTheVersionCommand(t *testing.T) {
	if code, text := kdedup(t.Context(), "version"); code != 0 ||
		!strings.HasPrefix(text, "kdedup ") || !strings.Contains(text, "module") {
		t.Errorf("%d: %s", code, text)
	}
	code, text := kdedup(t.Context(), "version", "--format", "json")
	var b build.Info
	if err := json.Unmarshal([]byte(text), &b); code != 0 || err != nil || b.Go == "" ||
		b.Platform == "" {
		t.Errorf("%d, %v: %s", code, err, text)
	}
	if code, text := kdedup(t.Context(), "version", "--format", "yaml"); code != 2 ||
		!strings.Contains(text, "--format must be text or json") {
		t.Errorf("%d: %s", code, text)
	}
}
