package servers

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
)

// Cluster is some Cassandra nodes that know each other.
type Cluster struct {
	Nodes []*Server
}

// StartCassandraCluster starts n nodes, one after the other, each in a folder of opts.Dir and on a
// loopback address of its own, and returns when each sees all the others up. All take the same
// ports, as clients expect of a cluster; Host, Port, StoragePort and Seed of opts are not used.
// Linux has all addresses that begin with 127; elsewhere all but 127.0.0.1 must be added to the
// loopback interface.
func StartCassandraCluster(ctx context.Context, n int, opts CassandraOptions) (*Cluster, error) {
	nodes, err := clusterOptions(n, opts)
	if err != nil {
		return nil, fmt.Errorf("start cassandra cluster: %w", err)
	}
	c := new(Cluster)
	for _, node := range nodes {
		s, err := StartCassandra(ctx, node)
		if err != nil {
			return nil, errors.Join(err, c.Stop())
		}
		c.Nodes = append(c.Nodes, s)
	}
	if err := c.WaitUp(ctx); err != nil {
		return nil, errors.Join(err, c.Stop())
	}
	return c, nil
}

// clusterOptions gives the nodes addresses in a random /24 network of the loopback range.
func clusterOptions(n int, opts CassandraOptions) ([]CassandraOptions, error) {
	network := fmt.Sprintf("127.%d.%d.", 1+rand.IntN(254), rand.IntN(255))
	host := func(i int) string { return fmt.Sprintf("%s%d", network, i+1) }
	ports, err := freePorts(host(0), 2)
	if err != nil {
		return nil, err
	}
	nodes := make([]CassandraOptions, n)
	for i := range nodes {
		nodes[i] = opts
		nodes[i].Dir = filepath.Join(opts.Dir, fmt.Sprintf("node%d", i+1))
		nodes[i].Host = host(i)
		nodes[i].Port, nodes[i].StoragePort = ports[0], ports[1]
		nodes[i].Seed = address(host(0), ports[1])
		nodes[i].replicas = n
		nodes[i].Config = maps.Clone(opts.Config)
		if nodes[i].Config == nil {
			nodes[i].Config = make(map[string]any)
		}
		nodes[i].Config["initial_token"] = tokens(i, n)
	}
	return nodes, nil
}

// tokens spreads the nodes' tokens evenly over Murmur3's ring, one node's between the others'. A
// node that chooses its own may choose those of another one, of which it has not heard yet, and
// ends.
func tokens(node, nodes int) string {
	const halfRing = 1 << 63
	step := math.MaxUint64/uint64(nodes*tokensPerNode) + 1
	texts := make([]string, tokensPerNode)
	for i := range texts {
		place := uint64(i*nodes+node)*step + step/2 // between 0 and 2^64, of which half is negative
		texts[i] = strconv.FormatInt(int64(place-halfRing), 10)
	}
	return strings.Join(texts, ",")
}

// Addrs are the nodes' addresses for clients.
func (c *Cluster) Addrs() []string {
	addrs := make([]string, len(c.Nodes))
	for i, node := range c.Nodes {
		addrs[i] = node.Addr()
	}
	return addrs
}

// WaitUp returns when every node sees every other up: when each answers a query that needs all of
// them. A node that was restarted answers for itself some time before the others notice.
func (c *Cluster) WaitUp(ctx context.Context) error {
	for _, node := range c.Nodes {
		if err := node.waitFor(ctx, func(ctx context.Context) error {
			return probeReplicas(ctx, node.Addr())
		}); err != nil {
			return fmt.Errorf("wait for the nodes that %s sees: %w\n%s", node.name, err, node.Log())
		}
	}
	return nil
}

// probeReplicas reads an empty table that every node replicates. The coordinator refuses when it
// takes a node to be down.
func probeReplicas(ctx context.Context, addr string) error {
	_, err := queryCQL(ctx, addr, "SELECT view_name FROM system_distributed.view_build_status",
		cqlConsistencyAll)
	return err
}

// Stop stops all nodes at once and returns when all are gone.
func (c *Cluster) Stop() error {
	errs := make([]error, len(c.Nodes))
	var wg sync.WaitGroup
	for i, node := range c.Nodes {
		wg.Go(func() { errs[i] = node.Stop() })
	}
	wg.Wait()
	return errors.Join(errs...)
}
