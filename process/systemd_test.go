package process

import (
	"log/slog"
	"net"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kdedup/kdedup/internal/testkit"
)

// Type=notify in deploy/kdedup.service: systemctl start returns at READY=1.
func TestSystemdIsToldOfTheStartAndTheStop(t *testing.T) {
	path := filepath.Join(t.TempDir(), "notify")
	socket, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	t.Setenv("NOTIFY_SOCKET", path)
	r := startReloading(t, neverLook)
	told := func() string {
		t.Helper()
		text := make([]byte, 100)
		n, err := socket.Read(text)
		if err != nil {
			t.Fatal(err)
		}
		return string(text[:n])
	}
	if got := told(); got != "READY=1" {
		t.Errorf("at the start: %s", got)
	}
	r.stop()
	if got := told(); got != "STOPPING=1" {
		t.Errorf("at the stop: %s", got)
	}
}

// A manager that stands still has a full socket, on which a write waits.
func TestAServiceManagerThatDoesNotReadHoldsUpNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "notify")
	socket, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	t.Setenv("NOTIFY_SOCKET", path)
	var printed testkit.Printed
	log := slog.New(slog.NewTextHandler(&printed, nil))
	for range 10_000 { // the kernel keeps net.unix.max_dgram_qlen of them
		if notifySystemd(log, systemdReady); printed.String() != "" {
			break
		}
	}
	if got := printed.String(); !strings.Contains(got, "systemd was not notified") ||
		!strings.Contains(got, "timeout") {
		t.Errorf("logged: %s", got)
	}
}
