package servers

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"github.com/kdedup/kdedup/internal/testkit"
)

func TestCassandraClusterSurvivesKillPauseAndRestart(t *testing.T) {
	Need(t)
	cluster, err := StartCassandraCluster(t.Context(), 2, CassandraOptions{
		Dir:          t.TempDir(),
		Heap:         "384m",
		Flags:        QuickStart,
		PaxosVariant: PaxosV1,
		Config:       map[string]any{"commitlog_sync": "batch", "commitlog_sync_period": nil},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cluster.Stop(); err != nil {
			t.Error(err)
		}
	})
	first, second := cluster.Nodes[0], cluster.Nodes[1]
	if got := mustCQL(
		t, first, "SELECT value FROM system_views.settings WHERE name = 'paxos_variant'",
	); !bytes.Contains(
		got, []byte("v1")) {
		t.Errorf("paxos_variant is not v1: %q", got)
	}
	mustCQL(t, first, "CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', "+
		"'replication_factor': 2}")
	mustCQL(t, first, "CREATE TABLE k.t (id text PRIMARY KEY)")
	waitSchema(t, cluster)
	mustCQL(t, first, "INSERT INTO k.t (id) VALUES ('before the kill')")

	second.Kill()
	if err := second.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := cluster.WaitUp(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := mustCQL(t, second, "SELECT id FROM k.t"); !bytes.Contains(got,
		[]byte("before the kill")) {
		t.Errorf("the restarted node forgot a row: %q", got)
	}

	wantSilenceWhilePaused(t, first)
	mustCQL(t, first, "SELECT id FROM k.t")
}

func wantSilenceWhilePaused(t *testing.T, node *Server) {
	t.Helper()
	if err := node.Pause(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if err := probeCassandra(ctx, node.Addr()); err == nil {
		t.Error("a paused node answers")
	}
	if err := node.Resume(); err != nil {
		t.Fatal(err)
	}
}

// mustCQL needs all replicas: what it writes is everywhere, what it reads was read everywhere.
func mustCQL(t *testing.T, node *Server, statement string) []byte {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	result, err := queryCQL(ctx, node.Addr(), statement, cqlConsistencyAll)
	if err != nil {
		t.Fatalf("%v\n%s", err, node.Log())
	}
	return result
}

// waitSchema returns when all nodes know the same tables; a driver does that by itself.
func waitSchema(t *testing.T, cluster *Cluster) {
	t.Helper()
	testkit.Eventually(t, time.Minute, "agreement on the schema", func() bool {
		want := mustCQL(t, cluster.Nodes[0], "SELECT schema_version FROM system.local")
		for _, node := range cluster.Nodes[1:] {
			if !bytes.Equal(want, mustCQL(t, node, "SELECT schema_version FROM system.local")) {
				return false
			}
		}
		return true
	})
}

func TestCassandraStartReportsAConfigurationThatIsRefused(t *testing.T) {
	Need(t)
	_, err := StartCassandra(t.Context(),
		CassandraOptions{Dir: t.TempDir(), Config: map[string]any{"no_such_setting": 1}})
	wantError(t, err, "no_such_setting")
}

func wantError(t *testing.T, err error, want string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Fatalf("got error %v, want …%s…", err, want)
	}
}
