package process

import (
	"net"
	"path/filepath"
	"testing"
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
