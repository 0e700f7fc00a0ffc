package servers

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
)

// PgbouncerOptions describe a pgbouncer in front of a PostgreSQL. All are required.
type PgbouncerOptions struct {
	Dir         string // its files
	Upstream    string // host:port of the PostgreSQL
	Mode        string // pool_mode
	Connections int    // to the server, for each user and database
}

// FindPgbouncer returns the program, which Debian keeps out of the PATH of users.
func FindPgbouncer() (string, error) {
	for _, name := range []string{"pgbouncer", "/usr/sbin/pgbouncer"} {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", errors.New("there is no pgbouncer: make packages installs it (Debian: pgbouncer)")
}

// StartPgbouncer starts one and returns when it takes connections. Whoever connects is the user
// postgres.
func StartPgbouncer(ctx context.Context, o PgbouncerOptions) (*Server, error) {
	s, err := newPgbouncer(o)
	if err != nil {
		return nil, fmt.Errorf("start pgbouncer: %w", err)
	}
	if err := s.start(ctx); err != nil {
		return nil, err
	}
	return s, nil
}

func newPgbouncer(o PgbouncerOptions) (*Server, error) {
	program, err := FindPgbouncer()
	if err != nil {
		return nil, err
	}
	host, upstream, err := net.SplitHostPort(o.Upstream)
	if err != nil {
		return nil, err
	}
	ports, err := freePorts(loopback, 1)
	if err != nil {
		return nil, err
	}
	home := &postgresHome{data: filepath.Join(o.Dir, "pgbouncer")}
	if err := os.MkdirAll(home.data, 0o755); err != nil {
		return nil, err
	}
	if os.Geteuid() == 0 { // as whom pgbouncer refuses to run
		if err := home.becomePostgres(); err != nil {
			return nil, err
		}
	}
	addr, file := address(loopback, ports[0]), filepath.Join(home.data, "pgbouncer.ini")
	text := fmt.Sprintf("[databases]\npostgres = host=%s port=%s user=postgres\n[pgbouncer]\nlisten_addr = %s\n"+
		"listen_port = %d\nunix_socket_dir =\nauth_type = any\npool_mode = %s\n"+
		"default_pool_size = %d\nserver_idle_timeout = 0\n",
		host, upstream, loopback, ports[0], o.Mode, o.Connections)
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		return nil, err
	}
	return &Server{
		name: "pgbouncer on " + addr, addr: addr, log: filepath.Join(o.Dir, "pgbouncer.log"),
		command: func() *exec.Cmd {
			cmd := exec.Command(program, "-q", file)
			cmd.Dir = home.data
			if home.as != nil {
				cmd.SysProcAttr = &syscall.SysProcAttr{Credential: home.as}
			}
			return cmd
		},
		probe: func(ctx context.Context) error {
			conn, err := (&net.Dialer{}).DialContext(ctx, "tcp",
				net.JoinHostPort(loopback, strconv.Itoa(ports[0])))
			if err != nil {
				return err
			}
			return conn.Close()
		},
	}, nil
}
