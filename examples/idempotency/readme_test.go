package main

import (
	"context"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/kdedup/kdedup/internal/testkit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// command is one of README.md, with what it is to print.
type command struct{ line, want string }

func readmeCommands(t *testing.T, address string) (commands []command) {
	t.Helper()
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, block := range strings.Split(string(text), "```console\n")[1:] {
		block, _, _ = strings.Cut(block, "```")
		for line := range strings.Lines(block) {
			if shell, ok := strings.CutPrefix(line, "$ "); ok {
				commands = append(commands, command{line: strings.ReplaceAll(strings.TrimSpace(shell), "127.0.0.1:8080", address)})
				continue
			}
			commands[len(commands)-1].want += line
		}
	}
	return commands
}

func TestTheCommandsOfTheReadmeDoWhatItSays(t *testing.T) {
	testkit.Program(t, "curl", "curl")
	for name, data := range map[string]string{"memory": "", "files": t.TempDir()} {
		t.Run(name, func(t *testing.T) {
			listener, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			ctx, stop := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() { ended <- run(ctx, listener, data, 0) }()
			defer func() {
				stop()
				if err := <-ended; err != nil {
					t.Error(err)
				}
			}()
			commands := readmeCommands(t, listener.Addr().String())
			if len(commands) < 8 {
				t.Fatalf("only %d commands", len(commands))
			}
			for _, c := range commands {
				got, err := exec.CommandContext(t.Context(), "bash", "-c", c.line).CombinedOutput()
				if err != nil || string(got) != c.want {
					t.Errorf("%s\n%v, got:\n%swant:\n%s", c.line, err, got, c.want)
				}
			}
		})
	}
}
