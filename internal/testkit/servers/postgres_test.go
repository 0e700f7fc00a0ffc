package servers

import (
	"bytes"
	"os/exec"
	"path/filepath"
	"testing"
)

func TestPostgresSurvivesKillPauseAndRestart(t *testing.T) {
	NeedPostgres(t)
	s, err := StartPostgres(t.Context(),
		PostgresOptions{Dir: t.TempDir(), Config: map[string]string{"max_connections": "17"}})
	ForTest(t, s, err)
	if got := psql(t, s, "SHOW max_connections"); got != "17" {
		t.Errorf("max_connections is %s", got)
	}
	psql(t, s, "CREATE TABLE t AS SELECT 'before the kill' AS id")
	for range 2 {
		children := descendants(s.proc.cmd.Process.Pid)
		s.Kill()
		if len(children) < 3 {
			t.Errorf("children of the server: %v", children)
		}
		for _, pid := range children {
			waitGone(t, pid)
		}
		if err := s.Restart(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := psql(t, s, "SELECT id FROM t"); got != "before the kill" {
			t.Errorf("after a kill there is %q", got)
		}
	}
	if err := s.Pause(); err != nil {
		t.Fatal(err)
	}
	if err := probeOnce(t.Context(), s.probe); err == nil {
		t.Error("a paused server answers")
	}
	if err := s.Resume(); err != nil {
		t.Fatal(err)
	}
	psql(t, s, "SELECT 1")
}

// psql asks as an operator does.
func psql(t *testing.T, s *Server, sql string) string {
	t.Helper()
	bin, err := FindPostgres()
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), filepath.Join(bin, "psql"), "-X", "-A", "-t", "-c",
		sql, "postgres://postgres@"+s.Addr()+"/postgres").CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", sql, err, out)
	}
	return string(bytes.TrimSpace(out))
}
