package embedded

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/internal/testkit"
)

// A volume is unmounted, a directory deleted or replaced, while the files in it are open.
func TestClaimsWaitWhileTheDirectoryIsGone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "data")
	store, err := Open(Options{Path: path, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	store.watch.Close()
	store.watch = dedup.NewWatch(10*time.Millisecond, store.stillThere)
	scope := dedup.Scope{ConsumerGroup: "g", Name: "t", TTL: time.Hour, Extractor: "key"}
	claim := func() string {
		_, err := store.Claim(t.Context(), scope, []dedup.Claim{{ID: "id"}})
		if err != nil {
			return err.Error()
		}
		return ""
	}
	waits := func(why string) {
		t.Helper()
		testkit.Eventually(t, time.Minute, "claims that wait: "+why, func() bool {
			return strings.Contains(claim(), why)
		})
		if _, err := store.Lookup(t.Context(), scope, "id"); err == nil ||
			!strings.Contains(err.Error(), why) {
			t.Errorf("a look-up, which readiness asks for: %v", err)
		}
	}
	if err := store.Register(t.Context(), scope); err != nil {
		t.Fatal(err)
	}
	if got := claim(); got != "" {
		t.Fatal(got)
	}
	if err := os.Rename(path, path+".away"); err != nil {
		t.Fatal(err)
	}
	waits("was removed or moved")
	other, err := Open(Options{Path: path, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	waits("another directory is in the place")
	if err := other.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(path); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".away", path); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, time.Minute, "claims again", func() bool { return claim() == "" })
}
