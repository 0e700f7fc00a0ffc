package chaos_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/Shopify/toxiproxy/v2"
	"github.com/rs/zerolog"

	"github.com/kdedup/kdedup/internal/testkit/servers"
)

// network is all the connections of kdedup processes: one line from each process to each broker,
// and one to each node, and to each process that keeps shards of a claim log, which all share.
type network struct {
	kafka     []*line
	output    []*line // to the broker of another cluster, if there is one
	cassandra []*line
	keepers   []*line // by process; none where processes do not ask each other
}

func startNetwork(
	t *testing.T, kafka, output *servers.Server, nodes []*servers.Server, keepers []servers.Route,
) *network {
	t.Helper()
	engine := toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.Nop())
	n := new(network)
	for i, route := range kafka.Routes() {
		n.kafka = append(n.kafka, &line{engine: engine, name: fmt.Sprint("kafka-", i),
			route: route})
	}
	if output != nil {
		for i, route := range output.Routes() {
			n.output = append(n.output, &line{engine: engine, name: fmt.Sprint("output-", i),
				route: route})
		}
	}
	for i, node := range nodes {
		n.cassandra = append(n.cassandra, &line{engine: engine, name: fmt.Sprint("cassandra-", i),
			route: node.Routes()[0]})
	}
	for i, route := range keepers {
		n.keepers = append(n.keepers, &line{engine: engine, name: fmt.Sprint("keepers-", i),
			route: route})
	}
	if err := each(n.all(), (*line).restore); err != nil {
		t.Fatal(err)
	}
	return n
}

func (n *network) stop() {
	for _, l := range n.all() {
		l.cut()
	}
}

func (n *network) all() []*line {
	return slices.Concat(n.kafka, n.output, n.cassandra, n.keepers)
}

// choose returns the lines that a fault of the part means.
func (n *network) choose(partName string, target int) []*line {
	all := map[string][]*line{"cassandra": n.cassandra, "kafka": n.kafka,
		"output": n.output, "keepers": n.keepers}[partName]
	if target == everyone {
		return all
	}
	return all[target : target+1]
}

// line is a proxy. To change a connection, toxiproxy waits for the bytes on their way, and for ever
// if the connection breaks before they arrive. So a proxy gets a fault at most once; the line is
// restored by another proxy, and one that hangs is given up. The methods are called by one part's
// faults only.
type line struct {
	engine *toxiproxy.ApiServer
	name   string
	route  servers.Route
	proxy  *toxiproxy.Proxy // nil while the line is cut
}

const (
	proxyPatience = 5 * time.Second // of what toxiproxy does at once, unless it hangs
	listenTries   = 100
	listenEvery   = 50 * time.Millisecond
)

// cut breaks all connections and refuses new ones.
func (l *line) cut() {
	if l.proxy != nil {
		atMost(proxyPatience, l.proxy.Stop)
		l.proxy = nil
	}
}

// restore ends every fault, and with it the connections that suffered from it.
func (l *line) restore() error {
	l.cut()
	proxy := toxiproxy.NewProxy(l.engine, l.name, l.route.Listen, l.route.Upstream)
	tick := time.NewTicker(listenEvery)
	defer tick.Stop()
	for try := 0; ; try++ {
		err := proxy.Start()
		if err == nil {
			l.proxy = proxy
			return nil
		}
		if try == listenTries {
			return fmt.Errorf("restore %s: %w", l.name, err)
		}
		<-tick.C // a proxy that was given up may still hold the port
	}
}

// add gives the line a toxic. If toxiproxy hangs, new connections suffer from it all the same.
func (l *line) add(toxic, stream, attributes string) error {
	text := fmt.Sprintf(`{"type": %q, "stream": %q, "attributes": %s}`, toxic, stream, attributes)
	result := make(chan error, 1)
	atMost(proxyPatience, func() {
		_, err := l.proxy.Toxics.AddToxicJson(strings.NewReader(text))
		result <- err
	})
	select {
	case err := <-result:
		if err != nil {
			return fmt.Errorf("add %s to %s: %w", text, l.name, err)
		}
	default:
	}
	return nil
}

// atMost returns when f does or the patience ends; then f is left to itself.
func atMost(patience time.Duration, f func()) {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		f()
	}()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-ended:
	case <-timer.C:
	}
}

// toxics are those of a network fault, by stream: upstream is from the process to its server.
func (f fault) toxics() (toxic, attributes string, streams []string) {
	streams = []string{"upstream", "downstream"}
	switch f.Kind {
	case latency: // milliseconds, in each direction
		return "latency", `{"latency": 300, "jitter": 250}`, streams
	case halfOpen: // bytes vanish, the connection stays
		lost := map[direction][]string{requests: streams[:1], answers: streams[1:], both: streams}
		return "timeout", `{"timeout": 0}`, lost[f.Lost]
	case slowClose:
		return "slow_close", `{"delay": 3000}`, streams
	case resetPeer:
		return "reset_peer", `{"timeout": 300}`, streams
	case bandwidth: // kilobytes a second
		return "bandwidth", `{"rate": 40}`, streams
	}
	return "", "", nil
}

// disturb begins a network fault on one line.
func (f fault) disturb(l *line) error {
	if f.Kind == cut {
		l.cut()
		return nil
	}
	toxic, attributes, streams := f.toxics()
	for _, stream := range streams {
		if err := l.add(toxic, stream, attributes); err != nil {
			return err
		}
	}
	return nil
}
