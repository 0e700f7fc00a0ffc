package chaos_test

import (
	"context"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/kdedup/kdedup/internal/testkit/servers"
)

const (
	nodes          = 3
	processes      = 4 // at most
	usualProcesses = 3
)

// world is the servers and the network between them and the processes. Producer and check go past
// the network.
type world struct {
	dir       string
	kafka     *servers.Server
	output    *servers.Server  // nil: one cluster has all
	cassandra *servers.Cluster // nil: the claims are in Kafka
	network   *network
}

// startWorld skips the test where such servers cannot run; continuous integration must run it.
func startWorld(t *testing.T, o options) *world {
	t.Helper()
	servers.Need(t)
	w := &world{dir: o.dir}
	start := time.Now()
	var (
		wg   sync.WaitGroup
		errs [3]error
	)
	wg.Go(func() { w.kafka, errs[0] = startKafka(t.Context(), w.dir, "kafka") })
	if o.apart.two {
		wg.Go(func() { w.output, errs[2] = startKafka(t.Context(), w.dir, "output") })
	}
	if o.store != inKafka {
		wg.Go(func() { w.cassandra, errs[1] = startCassandra(t.Context(), w.dir, o.commitLog) })
	}
	wg.Wait()
	t.Cleanup(func() { w.stop(t) })
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
	var keepers []servers.Route
	if o.share() {
		var err error
		if keepers, err = keepersRoutes(); err != nil {
			t.Fatal(err)
		}
	}
	w.network = startNetwork(t, w.kafka, w.output, w.nodes(), keepers)
	t.Logf("%v, and %d nodes, started in %v", o.apart, len(w.nodes()),
		time.Since(start).Round(time.Second))
	return w
}

// nodes are those of Cassandra, if it has the claims.
func (w *world) nodes() []*servers.Server {
	if w.cassandra == nil {
		return nil
	}
	return w.cassandra.Nodes
}

func startKafka(ctx context.Context, dir, name string) (*servers.Server, error) {
	return servers.StartKafka(ctx, servers.KafkaOptions{
		Dir: filepath.Join(dir, name), Heap: "512m", Flags: servers.QuickStart,
		Proxies: processes,
	})
}

// startCassandra makes the nodes' answers outlive kill -9 on two nodes, unless told otherwise: a
// node that writes its commit log now and then forgets what it acknowledged last.
func startCassandra(ctx context.Context, dir, commitLog string) (*servers.Cluster, error) {
	config := map[string]any{"commitlog_sync": commitLog, "commitlog_sync_period": nil}
	if commitLog == periodic {
		config["commitlog_sync_period"] = "10000ms"
	}
	return servers.StartCassandraCluster(ctx, nodes, servers.CassandraOptions{
		Dir: filepath.Join(dir, "cassandra"), Heap: "512m", Flags: servers.QuickStart,
		Proxied: true, Config: config,
	})
}

func (w *world) stop(t *testing.T) {
	var wg sync.WaitGroup
	for _, broker := range []*servers.Server{w.kafka, w.output} {
		if broker != nil {
			wg.Go(broker.Kill)
		}
	}
	for _, node := range w.nodes() {
		wg.Go(node.Kill)
	}
	wg.Wait()
	if w.network != nil {
		w.network.stop()
	}
}
