package servers

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// scripted is a server that is a shell script, which is up when it has made the file "up".
func scripted(t *testing.T, script string) *Server {
	dir := t.TempDir()
	return &Server{
		name: "scripted", log: filepath.Join(dir, "log"),
		command: func() *exec.Cmd {
			cmd := exec.Command("sh", "-c", script)
			cmd.Dir = dir
			return cmd
		},
		probe: func(context.Context) error {
			_, err := os.Stat(filepath.Join(dir, "up"))
			return err
		},
	}
}

func TestAStartThatFailsTellsWhatTheServerSaid(t *testing.T) {
	s := scripted(t, `echo no such file; exit 1`)
	if err := s.start(t.Context()); err == nil || !strings.Contains(err.Error(), "no such file") {
		t.Errorf("got %v", err)
	}
}
