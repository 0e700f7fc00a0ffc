package redis_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/internal/testkit"
	"github.com/kdedup/kdedup/internal/testkit/servers"
)

// With appendfsync everysec a server answers while the file is behind: as long as a sync is under
// way, what it answers is in its memory alone.
func TestAKilledServerForgetsWhatItPutOff(t *testing.T) {
	server := startOnSlowDisk(t)
	store, client := open(t, optionsFor(server.Addr())), admin(t, server.Addr())
	claims := claimsOf(100_000, 1)
	answered := 0
	testkit.Eventually(t, patience, "answers that are not in the file", func() bool {
		wantClaimed(t, store, claims[answered:answered+1])
		answered++
		info := client.InfoMap(t.Context(), "persistence").Item("Persistence", "aof_buffer_length")
		return info != "" && info != "0"
	})
	server.Kill()
	if err := server.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	last, err := open(t, optionsFor(server.Addr())).Lookup(t.Context(), scope,
		claims[answered-1].ID)
	if err != nil || last.Outcome != dedup.Undecided {
		t.Errorf("the last of %d claims is %+v, %v: docs/stores.md and the package comment say "+
			"that it may be forgotten",
			answered, last, err)
	}
}

func startOnSlowDisk(t *testing.T) *servers.Server {
	t.Helper()
	servers.NeedRedis(t)
	if runtime.GOOS != "linux" {
		t.Skip("LD_PRELOAD is Linux's")
	}
	library := filepath.Join(t.TempDir(), "slowsync.so")
	source, err := os.Open("testdata/slowsync.c") // by the test: Go's cache sees that
	if err != nil {
		t.Fatal(err)
	}
	defer source.Close()
	compile := exec.CommandContext(t.Context(), "cc", "-shared", "-fPIC", "-o", library,
		"-x", "c", "-", "-ldl")
	compile.Stdin = source
	if out, err := compile.CombinedOutput(); err != nil { // the race detector needs a cc as well
		t.Fatalf("%v: %s", err, strings.TrimSpace(string(out)))
	}
	s, err := servers.StartRedis(t.Context(), servers.RedisOptions{
		Dir: t.TempDir(), Config: map[string]string{"appendonly": "yes", "appendfsync": "everysec"},
		Env: []string{"LD_PRELOAD=" + library},
	})
	return servers.ForTest(t, s, err)
}
