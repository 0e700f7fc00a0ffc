package servers

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

const (
	defaultCassandraHeap = "1g"
	tokensPerNode        = 4
)

// Variants of the Paxos protocol under Cassandra's lightweight transactions.
const (
	PaxosV1 = "v1"
	PaxosV2 = "v2"
)

// CassandraSuperuser is the name, and the password, of the one role of a new node. There is none
// with the AllowAllAuthenticator, which is the default here.
const CassandraSuperuser = "cassandra"

// CassandraOptions describe a node. Only Dir is required.
type CassandraOptions struct {
	Dir          string   // data, configuration and log; a node started on an old Dir continues it
	Host         string   // a loopback address; 127.0.0.1 by default
	Port         int      // for clients; 0 takes a free one
	StoragePort  int      // for other nodes; 0 takes a free one
	Seed         string   // another node as host:storage port; empty starts a cluster of its own
	Heap         string   // as for -Xmx; 1g by default
	Flags        []string // of the JVM, besides those set here
	PaxosVariant string   // PaxosV1 or PaxosV2, the default
	// Proxied nodes stand behind a proxy, see Server.Routes: clients are told an address that ends
	// in a number higher by 100, with the same port, as drivers expect of a cluster. The node's own
	// address answers too.
	Proxied bool
	// Config is cassandra.yaml, above what is set here; nil removes a setting. A killed node
	// forgets the writes since the last mark in its commit log, unless commitlog_sync is batch (and
	// commitlog_sync_period is removed).
	Config map[string]any

	// replicas is the replication of the system's own distributed keyspace; 0 leaves the default.
	replicas int
}

// StartCassandra starts one node and returns when it answers queries. ctx bounds the start, with
// the first download of the jars, and nothing after it.
func StartCassandra(ctx context.Context, opts CassandraOptions) (*Server, error) {
	s, err := newCassandra(ctx, opts)
	if err != nil {
		return nil, fmt.Errorf("start cassandra: %w", err)
	}
	if err := s.start(ctx); err != nil {
		return nil, err
	}
	return s, nil
}

// newCassandra prepares the directory; nothing runs yet.
func newCassandra(ctx context.Context, opts CassandraOptions) (*Server, error) {
	home, err := newJavaHome(ctx, "cassandra", CassandraVersion(), opts.Dir, "logback.xml")
	if err != nil {
		return nil, err
	}
	opts, err = opts.withDefaults()
	if err != nil {
		return nil, err
	}
	config := cassandraConfig(filepath.Join(home.dir, "data"), opts)
	if err := writeCassandraConfig(
		filepath.Join(home.dir, "cassandra.yaml"), config, opts.Config,
	); err != nil {
		return nil, err
	}
	addr := address(opts.Host, opts.Port)
	flags := append(cassandraFlags(home.dir, opts.replicas), opts.Flags...)
	// meant for Java 11; as an agent its meter works on 17 as well
	if strings.HasPrefix(CassandraVersion(), "4.") {
		flags = append(flags, "-javaagent:"+filepath.Join(home.lib, "jamm-0.3.2.jar"))
	}
	var routes []Route
	if opts.Proxied {
		routes = []Route{{Listen: address(proxyHost(opts.Host), opts.Port), Upstream: addr}}
	}
	return &Server{
		name: "cassandra on " + addr,
		addr: addr,
		log:  filepath.Join(home.dir, "log"),
		command: func() *exec.Cmd {
			return home.command(opts.Heap, flags, "org.apache.cassandra.service.CassandraDaemon")
		},
		probe:  func(ctx context.Context) error { return probeCassandra(ctx, addr) },
		routes: routes,
	}, nil
}

func (o CassandraOptions) withDefaults() (CassandraOptions, error) {
	o.Host = cmp.Or(o.Host, loopback)
	ports, err := freePorts(o.Host, 2)
	if err != nil {
		return o, err
	}
	o.Port = cmp.Or(o.Port, ports[0])
	o.StoragePort = cmp.Or(o.StoragePort, ports[1])
	o.Seed = cmp.Or(o.Seed, address(o.Host, o.StoragePort))
	o.Heap = cmp.Or(o.Heap, defaultCassandraHeap)
	o.PaxosVariant = cmp.Or(o.PaxosVariant, PaxosV2)
	return o, nil
}

func cassandraConfig(data string, o CassandraOptions) map[string]any {
	known := o.Host
	if o.Proxied {
		known = proxyHost(o.Host)
	}
	return map[string]any{
		"cluster_name": "kdedup-test",
		"num_tokens":   tokensPerNode,
		"allocate_tokens_for_local_replication_factor": 1,
		"partitioner":              "org.apache.cassandra.dht.Murmur3Partitioner",
		"authenticator":            "AllowAllAuthenticator",
		"authorizer":               "AllowAllAuthorizer",
		"endpoint_snitch":          "SimpleSnitch",
		"commitlog_sync":           "periodic",
		"commitlog_sync_period":    "10000ms",
		"memtable_allocation_type": "heap_buffers",
		"auto_snapshot":            false, // of dropped keyspaces, which tests leave by the dozen
		"paxos_variant":            o.PaxosVariant,
		"listen_address":           o.Host,
		"rpc_address":              o.Host,
		"broadcast_rpc_address":    known, // what drivers learn about a node
		"native_transport_port":    o.Port,
		"storage_port":             o.StoragePort,
		"data_file_directories":    []string{filepath.Join(data, "data")},
		"commitlog_directory":      filepath.Join(data, "commitlog"),
		"hints_directory":          filepath.Join(data, "hints"),
		"saved_caches_directory":   filepath.Join(data, "saved_caches"),
		"cdc_raw_directory":        filepath.Join(data, "cdc"),
		"seed_provider": []any{map[string]any{
			"class_name": "org.apache.cassandra.locator.SimpleSeedProvider",
			"parameters": []any{map[string]string{"seeds": o.Seed}},
		}},
	}
}

// proxyHost is the address of the proxy in front of a node.
func proxyHost(node string) string {
	ip := netip.MustParseAddr(node).As4()
	ip[3] += 100
	return netip.AddrFrom4(ip).String()
}

// writeCassandraConfig writes JSON, which is YAML too.
func writeCassandraConfig(path string, config, overrides map[string]any) error {
	maps.Copy(config, overrides)
	maps.DeleteFunc(config, func(_ string, v any) bool { return v == nil })
	text, err := json.MarshalIndent(config, "", "  ")
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return os.WriteFile(path, text, 0o644)
}

// cassandraFlags are the JVM's. Of the settings for a quick start each is safe where no node joins
// while others are moving.
func cassandraFlags(dir string, replicas int) []string {
	flags := []string{
		"-Dcassandra.storagedir=" + filepath.Join(dir, "data"),
		"-Dcassandra.ring_delay_ms=2000",
		"-Dcassandra.skip_wait_for_gossip_to_settle=0",
		"-Dcassandra.superuser_setup_delay_ms=0",
		"-Dcassandra-foreground=yes",
		"-Djava.security.manager=allow",
		"-Djdk.attach.allowAttachSelf=true",
	}
	if replicas > 0 {
		flags = append(flags, fmt.Sprintf("-Dcassandra.system_distributed.default_rf=%d", replicas))
	}
	for _, pkg := range exportedPackages {
		flags = append(flags, "--add-exports="+pkg+"=ALL-UNNAMED")
	}
	for _, pkg := range openedPackages {
		flags = append(flags, "--add-opens="+pkg+"=ALL-UNNAMED")
	}
	return flags
}

// What Cassandra 5.0 reaches into on Java 17, as in its own jvm17-server.options.
var (
	exportedPackages = []string{
		"java.base/java.lang.ref",
		"java.base/jdk.internal.misc",
		"java.management.rmi/com.sun.jmx.remote.internal.rmi",
		"java.rmi/sun.rmi.registry",
		"java.rmi/sun.rmi.server",
		"java.rmi/sun.rmi.transport.tcp",
		"java.sql/java.sql",
		"jdk.unsupported/sun.misc",
	}
	openedPackages = []string{
		"java.base/java.io",
		"java.base/java.lang",
		"java.base/java.lang.module",
		"java.base/java.lang.reflect",
		"java.base/java.net",
		"java.base/java.nio",
		"java.base/java.util",
		"java.base/java.util.concurrent",
		"java.base/java.util.concurrent.atomic",
		"java.base/jdk.internal.loader",
		"java.base/jdk.internal.math",
		"java.base/jdk.internal.module",
		"java.base/jdk.internal.ref",
		"java.base/jdk.internal.reflect",
		"java.base/jdk.internal.util.jar",
		"java.base/sun.nio.ch",
		"java.rmi/sun.rmi.transport.tcp",
		"jdk.management/com.sun.management.internal",
	}
)
