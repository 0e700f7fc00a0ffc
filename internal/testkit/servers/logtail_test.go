package servers

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestLogTailShowsTheLastLines(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	var text strings.Builder
	for i := range 10_000 {
		fmt.Fprintf(&text, "line %d\n", i)
	}
	if err := os.WriteFile(path, []byte(text.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(logTail(path), "\n")
	if lines[0] != "end of "+path+":" || lines[1] != "line 9960" ||
		lines[len(lines)-1] != "line 9999" {
		t.Fatalf("got %q", lines)
	}
}

func TestLogTailSaysThatThereIsNoLog(t *testing.T) {
	if got := logTail(filepath.Join(t.TempDir(), "log")); !strings.HasPrefix(got, "no log: ") {
		t.Fatalf("got %q", got)
	}
}
