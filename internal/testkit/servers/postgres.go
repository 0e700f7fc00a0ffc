package servers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
)

// PostgresOptions describe a PostgreSQL server. Only Dir is required.
type PostgresOptions struct {
	Dir    string            // data and log; a server started on an old Dir continues it
	Port   int               // on 127.0.0.1; 0 takes a free one
	Config map[string]string // settings, above those of postgresql.conf
}

// FindPostgres returns the directory of PostgreSQL's programs: Debian keeps them out of PATH, one
// directory for each version, of which it takes the newest.
func FindPostgres() (string, error) {
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if err != nil {
		return "", err
	}
	if len(found) == 0 {
		path, err := exec.LookPath("initdb")
		if err != nil {
			return "", errors.New(
				"there is no initdb: make packages installs PostgreSQL (Debian: postgresql)")
		}
		return filepath.Dir(path), nil
	}
	version := func(path string) int {
		// of a name that is no number: 0
		n, _ := strconv.Atoi(filepath.Base(filepath.Dir(filepath.Dir(path))))
		return n
	}
	return filepath.Dir(slices.MaxFunc(found, func(a, b string) int {
		return cmp.Compare(version(a), version(b))
	})), nil
}

// StartPostgres starts one server and returns when it answers. ctx bounds the start and nothing
// after it. Its superuser is postgres, with a database of that name; nobody needs a password.
func StartPostgres(ctx context.Context, opts PostgresOptions) (*Server, error) {
	s, err := newPostgres(ctx, opts)
	if err != nil {
		return nil, fmt.Errorf("start postgres: %w", err)
	}
	if err := s.start(ctx); err != nil {
		return nil, err
	}
	return s, nil
}

// newPostgres makes the data directory; nothing runs yet.
func newPostgres(ctx context.Context, opts PostgresOptions) (*Server, error) {
	bin, err := FindPostgres()
	if err != nil {
		return nil, err
	}
	if opts.Dir == "" {
		return nil, errors.New("no Dir in the options")
	}
	ports, err := freePorts(loopback, 1)
	if err != nil {
		return nil, err
	}
	port := strconv.Itoa(cmp.Or(opts.Port, ports[0]))
	home := &postgresHome{bin: bin}
	if home.data, err = filepath.Abs(filepath.Join(opts.Dir, "data")); err != nil {
		return nil, err
	}
	if err := home.prepare(ctx); err != nil {
		return nil, err
	}
	return &Server{
		name: "postgres on " + loopback + ":" + port,
		addr: loopback + ":" + port,
		log:  filepath.Join(filepath.Dir(home.data), "log"),
		stop: syscall.SIGINT, // with SIGTERM it waits for its clients to leave
		command: func() *exec.Cmd {
			args := []string{"-D", home.data, "-p", port, "-c", "listen_addresses=" + loopback,
				"-c", "unix_socket_directories="}
			for _, key := range slices.Sorted(maps.Keys(opts.Config)) {
				args = append(args, "-c", key+"="+opts.Config[key])
			}
			return home.command("postgres", args...)
		},
		probe: func(ctx context.Context) error {
			return exec.CommandContext(ctx, filepath.Join(bin, "pg_isready"), "-q", "-h", loopback,
				"-p", port, "-U", "postgres").Run()
		},
	}, nil
}

// postgresHome is the programs and the data of one server.
type postgresHome struct {
	bin, data string
	as        *syscall.Credential // nil: the user of this process
}

// prepare makes the data directory unless it is there.
func (h *postgresHome) prepare(ctx context.Context) error {
	if err := os.MkdirAll(h.data, 0o700); err != nil {
		return err
	}
	if os.Geteuid() == 0 {
		if err := h.becomePostgres(); err != nil {
			return err
		}
	}
	if _, err := os.Stat(filepath.Join(h.data, "PG_VERSION")); err == nil {
		return nil
	}
	out, err := runProcess(ctx, h.command("initdb", "-D", h.data, "-U", "postgres", "-A", "trust",
		"-E", "UTF8", "--no-locale", "--no-instructions"))
	if err != nil {
		return fmt.Errorf("initdb: %w\n%s", err, out)
	}
	return nil
}

// becomePostgres is for root, as whom PostgreSQL refuses to run: it gives the data to the user whom
// the package has made, and lets him pass through the directories above.
func (h *postgresHome) becomePostgres() error {
	as, err := postgresUser()
	if err != nil {
		return err
	}
	if err := GiveToPostgres(h.data); err != nil {
		return err
	}
	h.as = as
	temporary := filepath.Clean(os.TempDir())
	for dir := filepath.Dir(h.data); dir != temporary &&
		dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		info, err := os.Stat(dir)
		if err != nil {
			return err
		}
		if info.Mode().Perm()&0o001 == 0 {
			if err := os.Chmod(dir, info.Mode().Perm()|0o011); err != nil {
				return err
			}
		}
	}
	return nil
}

func postgresUser() (*syscall.Credential, error) {
	u, err := user.Lookup("postgres")
	if err != nil {
		return nil, fmt.Errorf("root cannot run PostgreSQL, and there is no user postgres: %w", err)
	}
	uid, uidErr := strconv.ParseUint(u.Uid, 10, 32)
	gid, gidErr := strconv.ParseUint(u.Gid, 10, 32)
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, errors.Join(uidErr, gidErr)
}

// GiveToPostgres gives files to the user as whom root runs a server, who wants a private key to be
// his own. For anybody else than root, who runs servers as himself, it does nothing.
func GiveToPostgres(paths ...string) error {
	if os.Geteuid() != 0 {
		return nil
	}
	as, err := postgresUser()
	if err != nil {
		return err
	}
	for _, path := range paths {
		if err := os.Chown(path, int(as.Uid), int(as.Gid)); err != nil {
			return err
		}
	}
	return nil
}

func (h *postgresHome) command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(h.bin, name), args...)
	cmd.Dir = h.data
	if h.as != nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: h.as}
	}
	return cmd
}
