package servers

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// Images, of the versions that the jars have.
const (
	KafkaImage     = "apache/kafka:"
	CassandraImage = "cassandra:"
)

// Container is a server in a container. It is removed when it stops.
type Container struct {
	image string
	name  string
	addr  string
	log   string
	proc  *process // the docker command: it lives as long as the container and hands SIGTERM on
}

// FindDocker returns nil when a container engine answers.
func FindDocker(ctx context.Context) error {
	out, err := exec.CommandContext(ctx, "docker", "info", "--format",
		"{{.ServerVersion}}").CombinedOutput()
	switch {
	case errors.Is(err, exec.ErrNotFound):
		return errors.New("no docker in PATH")
	case err != nil:
		lines := strings.Split(strings.TrimSpace(string(out)), "\n")
		return fmt.Errorf("docker info: %w: %s", err, lines[len(lines)-1])
	}
	return nil
}

// StartKafkaContainer is StartKafka with a container; Dir holds only the log.
func StartKafkaContainer(ctx context.Context, opts KafkaOptions) (*Container, error) {
	port, err := containerPort(opts.Port)
	if err != nil {
		return nil, fmt.Errorf("start kafka container: %w", err)
	}
	// The container listens on the port that it is published under: a broker tells its clients
	// under which address they find it.
	addr := address(loopback, port)
	config := kafkaProperties(addr, address(loopback, port+1))
	config["listeners"] = fmt.Sprintf("PLAINTEXT://:%d,CONTROLLER://127.0.0.1:%d", port, port+1)
	maps.Copy(config, opts.Config)
	heap := cmp.Or(opts.Heap, defaultKafkaHeap)
	env := map[string]string{"KAFKA_HEAP_OPTS": "-Xms" + heap + " -Xmx" + heap}
	for key, value := range config {
		env["KAFKA_"+strings.ToUpper(strings.ReplaceAll(key, ".", "_"))] = value
	}
	return startContainer(ctx, opts.Dir, KafkaImage+KafkaVersion(), port, env, probeKafka)
}

// StartCassandraContainer is StartCassandra with a container, a cluster of its own; of the options
// Dir (for the log), Port, Heap, PaxosVariant and Config count.
func StartCassandraContainer(ctx context.Context, opts CassandraOptions) (*Container, error) {
	port, err := containerPort(opts.Port)
	if err != nil {
		return nil, fmt.Errorf("start cassandra container: %w", err)
	}
	settings := map[string]any{
		"native_transport_port": port, // as published: drivers ask the node for its address
		"paxos_variant":         cmp.Or(opts.PaxosVariant, PaxosV2),
		"auto_snapshot":         false,
	}
	maps.Copy(settings, opts.Config)
	heap := cmp.Or(opts.Heap, defaultCassandraHeap)
	env := map[string]string{
		"MAX_HEAP_SIZE": heap,
		// no effect with G1; without it the start script refuses MAX_HEAP_SIZE
		"HEAP_NEWSIZE":                    heap,
		"CASSANDRA_BROADCAST_RPC_ADDRESS": loopback,
		"JVM_EXTRA_OPTS":                  settingsFlags(settings),
	}
	return startContainer(ctx, opts.Dir, CassandraImage+CassandraVersion(), port, env,
		probeCassandra)
}

// settingsFlags set what the image's cassandra.yaml says, without a file in the container.
func settingsFlags(settings map[string]any) string {
	flags := []string{"-Dcassandra.config.allow_system_properties=true",
		"-Dcassandra.skip_wait_for_gossip_to_settle=0"}
	for _, key := range slices.Sorted(maps.Keys(settings)) {
		flags = append(flags, fmt.Sprintf("-Dcassandra.settings.%s=%v", key, settings[key]))
	}
	return strings.Join(flags, " ")
}

func containerPort(port int) (int, error) {
	if port != 0 {
		return port, nil
	}
	ports, err := freePorts(loopback, 1)
	if err != nil {
		return 0, err
	}
	return ports[0], nil
}

func startContainer(
	ctx context.Context, dir, image string, port int, env map[string]string,
	probe func(context.Context, string) error,
) (*Container, error) {
	c := &Container{
		image: image,
		name:  "kdedup-test-" + strings.ToLower(rand.Text()[:8]),
		addr:  address(loopback, port),
		log:   filepath.Join(dir, "log"),
	}
	err := c.launch(ctx, port, env)
	if err == nil {
		err = waitFor(ctx, c.proc, func(ctx context.Context) error { return probe(ctx, c.addr) })
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start %s: %w\n%s", image, err, c.Log()), c.Stop())
	}
	return c, nil
}

func (c *Container) launch(ctx context.Context, port int, env map[string]string) error {
	if err := pull(ctx, c.image); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(c.log), 0o755); err != nil {
		return err
	}
	log, err := os.Create(c.log)
	if err != nil {
		return err
	}
	defer log.Close() // the child has its own descriptor
	cmd := exec.Command("docker", runArgs(c.name, c.image, port, env)...)
	cmd.Stdout, cmd.Stderr = log, log
	c.proc, err = startProcess(cmd, syscall.SIGTERM)
	return err
}

func runArgs(name, image string, port int, env map[string]string) []string {
	args := []string{"run", "--rm", "--init", "--name", name, "-p",
		fmt.Sprintf("%s:%d:%d", loopback, port, port)}
	for _, key := range slices.Sorted(maps.Keys(env)) {
		args = append(args, "-e", key+"="+env[key])
	}
	return append(args, image)
}

// pull gets the image unless it is there: a download is no part of the limited time for a start.
func pull(ctx context.Context, image string) error {
	if _, err := runProcess(ctx, exec.Command("docker", "image", "inspect", image)); err == nil {
		return nil
	}
	if out, err := runProcess(ctx, exec.Command("docker", "pull", "-q", image)); err != nil {
		return fmt.Errorf("pull: %w\n%s", err, out)
	}
	return nil
}

// Addr is where clients connect, "host:port".
func (c *Container) Addr() string { return c.addr }

// Stop ends the server gracefully and returns when the container is gone.
func (c *Container) Stop() error {
	if c.proc == nil {
		return nil
	}
	err := c.proc.terminate(stopGrace)
	if err == nil {
		return nil
	}
	remove := exec.Command("docker", "rm", "-f", c.name)
	if out, rmErr := runProcess(context.Background(), remove); rmErr != nil {
		err = errors.Join(err, fmt.Errorf("%s: %w\n%s", remove, rmErr, out))
	}
	return fmt.Errorf("stop %s: %w", c.name, err)
}

// Log returns the end of the server's log, for error messages.
func (c *Container) Log() string { return logTail(c.log) }
