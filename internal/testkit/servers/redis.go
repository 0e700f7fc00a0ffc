package servers

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// RedisOptions describe a Redis or Valkey server. Only Dir is required.
type RedisOptions struct {
	Dir    string            // data and log; a server started on an old Dir continues it
	Port   int               // on 127.0.0.1; 0 takes a free one
	Config map[string]string // as in redis.conf, above what is set here
	Env    []string          // "NAME=value", beside the environment of the test
}

// FindRedis returns the path of redis-server or valkey-server, or of the one that the environment
// names.
func FindRedis() (string, error) {
	if name := os.Getenv(RedisProgramEnv); name != "" {
		return exec.LookPath(name)
	}
	for _, name := range []string{"redis-server", "valkey-server"} {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", errors.New("there is no redis-server and no valkey-server; make packages installs " +
		"one (Debian: redis-server)")
}

// StartRedis starts one server and returns when it answers. It keeps nothing on disk, unless Config
// says so. ctx bounds the start.
func StartRedis(ctx context.Context, opts RedisOptions) (*Server, error) {
	s, err := newRedis(opts)
	if err != nil {
		return nil, fmt.Errorf("start redis: %w", err)
	}
	if err := s.start(ctx); err != nil {
		return nil, err
	}
	return s, nil
}

func newRedis(opts RedisOptions) (*Server, error) {
	program, err := FindRedis()
	if err != nil {
		return nil, err
	}
	dir, err := filepath.Abs(opts.Dir)
	if err != nil {
		return nil, err
	}
	data := filepath.Join(dir, "data")
	if err := os.MkdirAll(data, 0o755); err != nil {
		return nil, err
	}
	ports, err := freePorts(loopback, 2)
	if err != nil {
		return nil, err
	}
	port := cmp.Or(opts.Port, ports[0])
	config := map[string]string{
		"bind": loopback, "port": strconv.Itoa(port), "dir": data, "save": "",
		// by default 10000 above the other, which others may have
		"cluster-port": strconv.Itoa(ports[1]),
	}
	maps.Copy(config, opts.Config)
	addr := address(loopback, port)
	return &Server{
		name: "redis on " + addr, addr: addr, log: filepath.Join(dir, "log"),
		command: func() *exec.Cmd {
			cmd := exec.Command(program, redisArgs(config)...)
			cmd.Env = append(os.Environ(), opts.Env...)
			return cmd
		},
		probe: func(ctx context.Context) error { return probeRedis(ctx, addr) },
	}, nil
}

func redisArgs(config map[string]string) (args []string) {
	for _, key := range slices.Sorted(maps.Keys(config)) {
		args = append(args, "--"+key)
		args = append(args, strings.Fields(config[key])...)
		if config[key] == "" {
			args = append(args, "")
		}
	}
	return args
}

// probeRedis takes a server that wants a password for one that works.
func probeRedis(ctx context.Context, addr string) error {
	answer, err := callRedis(ctx, addr, "PING")
	if err == nil && answer != "+PONG" && !strings.HasPrefix(answer, "-NOAUTH") {
		err = errors.New(answer)
	}
	return err
}

// callRedis sends one command over a connection of its own and returns the first line of the
// answer, or the text if that is what the answer is.
func callRedis(ctx context.Context, addr, command string) (string, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	if deadline, ok := ctx.Deadline(); ok {
		if err := conn.SetDeadline(deadline); err != nil {
			return "", err
		}
	}
	if _, err := io.WriteString(conn, command+"\r\n"); err != nil {
		return "", err
	}
	in := bufio.NewReader(conn)
	line, err := in.ReadString('\n')
	if err != nil {
		return "", fmt.Errorf("redis %q: %w", command, err)
	}
	line = strings.TrimSpace(line)
	size, err := strconv.Atoi(strings.TrimPrefix(line, "$"))
	if err != nil || size < 0 || !strings.HasPrefix(line, "$") {
		return line, nil
	}
	text := make([]byte, size)
	_, err = io.ReadFull(in, text)
	return string(text), err
}

const redisSlots = 16384

// StartRedisCluster starts n masters that share the slots evenly and returns when each of them
// takes the cluster for whole. Port of opts is not used.
func StartRedisCluster(ctx context.Context, n int, opts RedisOptions) (nodes []*Server, err error) {
	defer func() {
		if err != nil {
			for _, node := range nodes {
				node.Kill()
			}
		}
	}()
	for i := range n {
		ports, err := freePorts(loopback, 1)
		if err != nil {
			return nodes, fmt.Errorf("start redis cluster: %w", err)
		}
		one := RedisOptions{Dir: filepath.Join(opts.Dir, fmt.Sprintf("node%d", i+1)),
			Config: maps.Clone(opts.Config)}
		if one.Config == nil {
			one.Config = make(map[string]string)
		}
		one.Config["cluster-enabled"], one.Config["cluster-port"] = "yes", strconv.Itoa(ports[0])
		node, err := StartRedis(ctx, one)
		if err != nil {
			return nodes, err
		}
		nodes = append(nodes, node)
		if err := joinRedis(
			ctx, nodes, ports[0], i*redisSlots/n, (i+1)*redisSlots/n-1,
		); err != nil {
			return nodes, fmt.Errorf("start redis cluster: %w", err)
		}
	}
	for _, node := range nodes {
		if err := node.waitFor(ctx, func(ctx context.Context) error {
			return probeRedisCluster(ctx, node.addr, n)
		}); err != nil {
			return nodes, fmt.Errorf("start redis cluster: %w\n%s", err, node.Log())
		}
	}
	return nodes, nil
}

// joinRedis gives the last node its slots and makes it known to the first.
func joinRedis(ctx context.Context, nodes []*Server, bus, low, high int) error {
	last := nodes[len(nodes)-1]
	commands := [][2]string{{last.addr, fmt.Sprintf("CLUSTER ADDSLOTSRANGE %d %d", low, high)}}
	if len(nodes) > 1 {
		host, port, err := net.SplitHostPort(last.addr)
		if err != nil {
			return err
		}
		commands = append(commands,
			[2]string{nodes[0].addr, fmt.Sprintf("CLUSTER MEET %s %s %d", host, port, bus)})
	}
	for _, c := range commands {
		if answer, err := callRedis(ctx, c[0], c[1]); err != nil || answer != "+OK" {
			return fmt.Errorf("%s: %s %w", c[1], answer, err)
		}
	}
	return nil
}

func probeRedisCluster(ctx context.Context, addr string, nodes int) error {
	info, err := callRedis(ctx, addr, "CLUSTER INFO")
	if err == nil && !(strings.Contains(info, "cluster_state:ok") &&
		strings.Contains(info, fmt.Sprintf("cluster_size:%d\r", nodes))) {
		err = errors.New("the cluster is not whole")
	}
	return err
}

// StartSentinel starts a Redis Sentinel that watches nothing yet.
func StartSentinel(ctx context.Context, opts RedisOptions) (*Server, error) {
	s, err := newRedis(opts)
	if err != nil {
		return nil, fmt.Errorf("start sentinel: %w", err)
	}
	file := filepath.Join(filepath.Dir(s.log), "sentinel.conf") // it keeps its state there
	host, port, err := net.SplitHostPort(s.addr)
	if err != nil {
		return nil, fmt.Errorf("start sentinel: %w", err)
	}
	if err := os.WriteFile(
		file, fmt.Appendf(nil, "bind %s\nport %s\n", host, port), 0o600,
	); err != nil {
		return nil, fmt.Errorf("start sentinel: %w", err)
	}
	program := s.command().Path
	s.command = func() *exec.Cmd { return exec.Command(program, file, "--sentinel") }
	if err := s.start(ctx); err != nil {
		return nil, err
	}
	return s, nil
}
