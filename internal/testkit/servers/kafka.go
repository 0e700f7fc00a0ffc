package servers

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

const (
	loopback         = "127.0.0.1"
	defaultKafkaHeap = "768m"
)

// KafkaOptions describe a broker. Only Dir is required.
type KafkaOptions struct {
	// data, configuration and log; a broker started on an old Dir continues it
	Dir    string
	Port   int               // on 127.0.0.1; 0 takes a free one
	Heap   string            // as for -Xmx; 768m by default
	Flags  []string          // of the JVM
	Config map[string]string // broker properties, above those set here
	// Proxies is in front of how many proxies the broker stands, see Server.Routes. Each has a
	// listener of its own, because a broker tells its clients an address per listener.
	Proxies int
	// Listeners are more ways to the broker, besides the plain one for the test itself.
	Listeners []KafkaListener
	// Joins is the first broker of the cluster to which this one is added; nil makes a cluster.
	Joins *Server
}

// KafkaListener has a port of its own. Its settings, such as certificates, are properties of the
// broker that begin with listener.name.NAME, with the name in lower case.
type KafkaListener struct {
	Name     string // in upper case
	Protocol string // SSL or SASL_SSL
	Proxied  bool   // a proxy stands in front, see Server.Listener
}

// StartKafka starts one broker, which is its own controller unless it joins another one, and
// returns when it answers. ctx bounds the start, with the first download of the jars, and nothing
// after it.
//
// Everything is kept once (replication factor 1), transactions work, topics are not created by
// being used, and a new consumer group does not wait for more members.
func StartKafka(ctx context.Context, opts KafkaOptions) (*Server, error) {
	s, err := newKafka(ctx, opts)
	if err != nil {
		return nil, fmt.Errorf("start kafka: %w", err)
	}
	if err := s.start(ctx); err != nil {
		return nil, err
	}
	return s, nil
}

// newKafka prepares the directory; nothing runs yet.
func newKafka(ctx context.Context, opts KafkaOptions) (*Server, error) {
	home, err := newJavaHome(ctx, "kafka", KafkaVersion(), opts.Dir, "log4j2.properties")
	if err != nil {
		return nil, err
	}
	ports, err := freePorts(loopback, 2+2*opts.Proxies+2*len(opts.Listeners))
	if err != nil {
		return nil, err
	}
	addr := address(loopback, cmp.Or(opts.Port, ports[0]))
	controller := address(loopback, ports[1])
	config := kafkaProperties(addr, controller)
	if opts.Joins != nil {
		controller = opts.Joins.controller
		join(config, addr, controller)
	}
	routes := kafkaRoutes(ports[2 : 2+2*opts.Proxies])
	listeners := make(map[string]Route)
	for i, route := range routes {
		addListener(config, fmt.Sprint("PROXY", i), "PLAINTEXT", route)
	}
	for i, route := range kafkaRoutes(ports[2+2*opts.Proxies:]) {
		l := opts.Listeners[i]
		if !l.Proxied {
			route.Upstream = route.Listen
		}
		addListener(config, l.Name, l.Protocol, route)
		listeners[l.Name] = route
	}
	config["log.dirs"] = filepath.Join(home.dir, "data")
	if strings.HasPrefix(KafkaVersion(), "3.") { // from 4.0 on both are there
		config["group.coordinator.rebalance.protocols"] = "classic,consumer"
	}
	maps.Copy(config, opts.Config)
	file := filepath.Join(home.dir, "server.properties")
	if err := writeProperties(file, config); err != nil {
		return nil, err
	}
	cluster, err := clusterID(opts.Joins)
	if err != nil {
		return nil, err
	}
	if err := formatKafka(ctx, home, file, cluster); err != nil {
		return nil, err
	}
	return &Server{
		dir: home.dir, controller: controller,
		name: "kafka on " + addr,
		addr: addr,
		log:  filepath.Join(home.dir, "log"),
		command: func() *exec.Cmd {
			return home.command(cmp.Or(opts.Heap, defaultKafkaHeap), opts.Flags, "kafka.Kafka",
				file)
		},
		probe:  func(ctx context.Context) error { return probeKafka(ctx, addr) },
		routes: routes, listeners: listeners,
	}, nil
}

// join makes the properties those of a broker without a controller. A cluster has two brokers here.
func join(config map[string]string, addr, controller string) {
	config["process.roles"] = "broker"
	config["node.id"] = "2"
	config["controller.quorum.voters"] = "1@" + controller
	config["listeners"] = "PLAINTEXT://" + addr
}

// clusterID is that of the first broker, or a new one.
func clusterID(first *Server) (string, error) {
	if first == nil {
		var id [16]byte
		_, _ = rand.Read(id[:])
		id[0] &= 0x7f // no '-' in front: the tool would take it for an option
		return base64.RawURLEncoding.EncodeToString(id[:]), nil
	}
	text, err := os.ReadFile(metaProperties(first.dir))
	if err != nil {
		return "", fmt.Errorf("read the cluster's ID: %w", err)
	}
	for line := range strings.Lines(string(text)) {
		if id, found := strings.CutPrefix(line, "cluster.id="); found {
			return strings.TrimSpace(id), nil
		}
	}
	return "", fmt.Errorf("%s has no cluster.id", metaProperties(first.dir))
}

func metaProperties(dir string) string { return filepath.Join(dir, "data", "meta.properties") }

// kafkaRoutes takes two ports for each route.
func kafkaRoutes(ports []int) []Route {
	routes := make([]Route, len(ports)/2)
	for i := range routes {
		routes[i] = Route{Listen: address(loopback, ports[2*i]),
			Upstream: address(loopback, ports[2*i+1])}
	}
	return routes
}

// addListener adds a listener that advertises the address of the proxy, if there is one.
func addListener(config map[string]string, name, protocol string, route Route) {
	config["listeners"] += fmt.Sprintf(",%s://%s", name, route.Upstream)
	config["advertised.listeners"] += fmt.Sprintf(",%s://%s", name, route.Listen)
	config["listener.security.protocol.map"] += fmt.Sprintf(",%s:%s", name, protocol)
}

// kafkaProperties are those of a broker on one machine, for the addresses of its two listeners.
func kafkaProperties(broker, controller string) map[string]string {
	return map[string]string{
		"process.roles":                  "broker,controller",
		"node.id":                        "1",
		"controller.quorum.voters":       "1@" + controller,
		"listeners":                      "PLAINTEXT://" + broker + ",CONTROLLER://" + controller,
		"advertised.listeners":           "PLAINTEXT://" + broker,
		"controller.listener.names":      "CONTROLLER",
		"listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
		// A killed broker may come back only when its old session has ended, after 9 s by default.
		"broker.session.timeout.ms":        "2000",
		"broker.heartbeat.interval.ms":     "500",
		"auto.create.topics.enable":        "false",
		"group.initial.rebalance.delay.ms": "0",
		"offsets.topic.replication.factor": "1",
		// of 50: quicker to create, to load and to recover
		"offsets.topic.num.partitions":                     "8",
		"transaction.state.log.replication.factor":         "1",
		"transaction.state.log.min.isr":                    "1",
		"transaction.state.log.num.partitions":             "8",
		"share.coordinator.state.topic.replication.factor": "1",
		"share.coordinator.state.topic.min.isr":            "1",
	}
}

func writeProperties(path string, config map[string]string) error {
	var b strings.Builder
	for _, key := range slices.Sorted(maps.Keys(config)) {
		fmt.Fprintf(&b, "%s=%s\n", key, config[key])
	}
	return os.WriteFile(path, []byte(b.String()), 0o644)
}

// formatKafka prepares new log directories for a broker of a cluster.
func formatKafka(ctx context.Context, home *javaHome, properties, cluster string) error {
	if _, err := os.Stat(metaProperties(home.dir)); err == nil {
		return nil
	}
	cmd := home.command("256m", nil, "kafka.tools.StorageTool",
		"format", "-t", cluster, "-c", properties)
	if out, err := runProcess(ctx, cmd); err != nil {
		return fmt.Errorf("format %s: %w\n%s", home.dir, err, out)
	}
	return nil
}

// probeKafka asks for the broker itself in the metadata: before the controller let it in, a broker
// answers without it.
func probeKafka(ctx context.Context, addr string) error {
	client, err := kgo.NewClient(kgo.SeedBrokers(addr), kgo.RequestRetries(0),
		kgo.DialTimeout(probeLimit))
	if err != nil {
		return err
	}
	defer client.Close()
	meta, err := kadm.NewClient(client).BrokerMetadata(ctx)
	if err != nil {
		return err
	}
	if len(meta.Brokers) == 0 || meta.Controller < 0 {
		return errors.New("the broker has not joined its cluster yet")
	}
	return nil
}
