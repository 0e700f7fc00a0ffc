package process

import (
	"fmt"
	"log/slog"
	"net"
	"os"
	"time"
)

// What systemd is told, see sd_notify(3).
const (
	systemdReady    = "READY=1"
	systemdStopping = "STOPPING=1"
)

// systemdPatience is short: a service manager that does not read holds up neither a start nor a
// stop.
const systemdPatience = time.Second

// notifySystemd does nothing where systemd did not start the process.
func notifySystemd(log *slog.Logger, state string) {
	socket := os.Getenv("NOTIFY_SOCKET")
	if socket == "" {
		return
	}
	if err := notify(socket, state); err != nil {
		log.Warn("systemd was not notified", "state", state, "error", err)
	}
}

func notify(socket, state string) error {
	conn, err := net.DialTimeout("unixgram", socket, systemdPatience)
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(systemdPatience)); err != nil {
		return fmt.Errorf("limit the time of the notification: %w", err)
	}
	_, err = conn.Write([]byte(state))
	return err
}
