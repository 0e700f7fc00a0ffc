package servers

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

func shellProgram(t *testing.T, script string) ProgramOptions {
	dir := t.TempDir()
	ready := filepath.Join(dir, "ready")
	return ProgramOptions{
		Name: "shell", Dir: dir, Addr: "nowhere",
		Command: func() *exec.Cmd { return exec.Command("sh", "-c", script, "sh", ready) },
		Probe: func(context.Context) error {
			_, err := os.Stat(ready)
			return err
		},
	}
}

func TestAProgramIsHandledLikeAServer(t *testing.T) {
	s, err := StartProgram(t.Context(), shellProgram(t, `touch "$1"; sleep 1000`))
	if err != nil {
		t.Fatal(err)
	}
	ended := s.Ended()
	if err := errors.Join(s.Pause(), s.Resume()); err != nil {
		t.Error(err)
	}
	select {
	case <-ended:
		t.Error("a program that runs has ended")
	default:
	}
	s.Kill()
	<-ended
	if err := s.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := s.Stop(); err != nil {
		t.Error(err)
	}
	<-s.Ended()
}

func TestAProgramThatEndsDuringItsStartIsAnError(t *testing.T) {
	_, err := StartProgram(t.Context(), shellProgram(t, `echo no brokers; exit 3`))
	wantError(t, err, "no brokers")
}

func TestAStartEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	_, err := StartProgram(ctx, shellProgram(t, `sleep 1000`))
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("got %v, want %v", err, context.DeadlineExceeded)
	}
}
