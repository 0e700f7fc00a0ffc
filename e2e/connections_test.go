package e2e_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/kdedup/kdedup/internal/testkit"
	"github.com/kdedup/kdedup/internal/testkit/servers"
)

// crowd is a pattern with many topics on a broker of their own; more are settings of its entry.
func crowd(t *testing.T, topics int, more ...string) (*tenants, *servers.Server) {
	t.Helper()
	servers.Need(t)
	kafka, err := servers.StartKafka(t.Context(), servers.KafkaOptions{Dir: t.TempDir()})
	s := tenantsAt(t, []string{servers.ForTest(t, kafka, err).Addr()}, "crowd",
		strings.Join(append(more, "on_missing_id: drop"), "\n    "))
	s.create(0, topics)
	return s, kafka
}

// connections counts those to the broker, by the kernel's table.
func (d *tenants) connections() (n int) {
	d.t.Helper()
	var port int
	if _, err := fmt.Sscanf(d.brokers[0], "127.0.0.1:%d", &port); err != nil {
		d.t.Fatal(err)
	}
	for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		text, err := os.ReadFile(table)
		if err != nil {
			d.t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			fields := strings.Fields(line)
			established := len(fields) > 3 && fields[3] == "01"
			if established && strings.HasSuffix(fields[2], fmt.Sprintf(":%04X", port)) {
				n++
			}
		}
	}
	return n
}

// settles waits until all topics are read, have forwarded an order each, and what the process has
// opened for its start only is closed.
func (d *tenants) settles(one *instance, topics int) {
	d.t.Helper()
	testkit.Eventually(d.t, 5*time.Minute, "the pipelines of all topics", func() bool {
		return len(one.inputs()) == topics && one.ready()
	})
	for i := range topics {
		d.produceOrders(i, 1)
	}
	if err := d.client.Flush(d.t.Context()); err != nil {
		d.t.Fatal(err)
	}
	testkit.Eventually(d.t, 5*time.Minute, "the orders of all topics", func() bool {
		return one.forwarded() >= topics*orders
	})
}

// The lanes of many topics ask what they can by connections that they share, and keep none that
// they do not use: the lane of a topic has three.
func TestManyTopicsHaveFewConnections(t *testing.T) {
	testkit.InTurn(t)
	t.Parallel()
	const topics, most = 100, 3
	d, _ := crowd(t, topics)
	own := d.connections() // of the test
	one := d.start("one")
	d.settles(one, topics)
	const shared = 20 // by all topics, and new ones of the test
	testkit.Eventually(t, time.Minute, "three connections a topic", func() bool {
		return d.connections()-own <= most*topics+shared
	})
	t.Logf("%d connections of %d topics, %.0f were opened by lanes; %s", d.connections()-own,
		topics, one.counter("kdedup_kafka_client_connects_total"), one.footprint())
	one.stop()
}

// A broker that admits two connections a second closes those beyond. A start takes its time, keeps
// what it has, and ends.
func TestAStartEndsHoweverFewConnectionsABrokerAdmits(t *testing.T) {
	testkit.InTurn(t)
	t.Parallel()
	const topics = 10
	d, _ := crowd(t, topics)
	d.produceOrders(0, 0) // so that the test has the connections that it needs
	if err := d.client.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	address := "127.0.0.1"
	altered, err := d.admin.AlterClientQuotas(t.Context(), []kadm.AlterClientQuotaEntry{{
		Entity: kadm.ClientQuotaEntity{{Type: "ip", Name: &address}},
		Ops:    []kadm.AlterClientQuotaOp{{Key: "connection_creation_rate", Value: 2}},
	}})
	if err != nil || len(altered) != 1 || altered[0].Err != nil {
		t.Fatalf("set the quota: %+v, %v", altered, err)
	}
	began := time.Now()
	one := d.start("one")
	d.settles(one, topics)
	if opened := one.counter("kdedup_kafka_client_connects_total"); opened > 10*topics {
		t.Errorf("the lanes of %d topics opened %.0f connections, and did not keep them", topics,
			opened)
	}
	if failed := one.counter("kdedup_lane_failures_total"); failed > 0 {
		t.Errorf("lanes failed %.0f times, and gave their connections up", failed)
	}
	t.Logf("%d topics after %s; %s", topics, time.Since(began).Round(time.Second), one.footprint())
	one.stop()
}
