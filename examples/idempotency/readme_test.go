package main

import (
	"context"
	"net"
	"testing"

	"go.uber.org/goleak"

	"github.com/kdedup/kdedup/internal/testkit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

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
			commands := testkit.ReadmeCommands(t, "127.0.0.1:8080", listener.Addr().String())
			if len(commands) < 8 {
				t.Fatalf("only %d commands", len(commands))
			}
			testkit.RunReadme(t, ".", commands)
		})
	}
}
