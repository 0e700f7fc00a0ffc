package servers

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// A client that comes through a proxy must be told the address of that proxy, and others the
// broker's own; the proxies here are only addresses.
func TestABrokerTellsEachClientTheAddressOfItsProxy(t *testing.T) {
	Need(t)
	kafka, err := StartKafka(t.Context(), KafkaOptions{Dir: t.TempDir(), Heap: "256m", Proxies: 2})
	ForTest(t, kafka, err)
	want := map[string]string{kafka.Addr(): kafka.Addr()}
	got := map[string]string{kafka.Addr(): toldBroker(t, kafka.Addr())}
	for _, route := range kafka.Routes() {
		want[route.Upstream] = route.Listen
		got[route.Upstream] = toldBroker(t, route.Upstream)
	}
	if diff := cmp.Diff(want, got); diff != "" || len(want) != 3 {
		t.Errorf("brokers that clients are told, by where they ask: -want +got:\n%s", diff)
	}
}

// toldBroker asks at addr where the broker is.
func toldBroker(t *testing.T, addr string) string {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(addr))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	meta, err := kadm.NewClient(client).BrokerMetadata(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(meta.Brokers) != 1 {
		t.Fatalf("%d brokers", len(meta.Brokers))
	}
	return address(meta.Brokers[0].Host, int(meta.Brokers[0].Port))
}

func TestAProxiedNodeIsKnownByTheAddressOfItsProxy(t *testing.T) {
	node := CassandraOptions{Host: "127.3.4.2", Proxied: true}
	if got := cassandraConfig("data", node)["broadcast_rpc_address"]; got != "127.3.4.102" {
		t.Errorf("got %v", got)
	}
	if got := cassandraConfig(
		"data", CassandraOptions{Host: "127.3.4.2"},
	)["broadcast_rpc_address"]; got != "127.3.4.2" {
		t.Errorf("without a proxy: got %v", got)
	}
	if proxy := netip.MustParseAddr(proxyHost(node.Host)); !proxy.IsLoopback() {
		t.Errorf("%v is not a loopback address", proxy)
	}
}
