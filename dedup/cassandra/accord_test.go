package cassandra_test

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/kdedup/kdedup/dedup/cassandra"
	"github.com/kdedup/kdedup/internal/testkit/servers"
	"github.com/kdedup/kdedup/internal/testkit/skip"
)

// Accord answers each conditional insert with a TTL as applied and keeps none of them: every copy
// would pass.
func TestATableUnderAccordIsRefused(t *testing.T) {
	if strings.Compare(servers.CassandraVersion(), "6") < 0 {
		t.Skip(skip.LeftToProof + ": Cassandra has Accord from 6.0 on")
	}
	servers.Need(t)
	node, err := servers.StartCassandra(t.Context(), servers.CassandraOptions{
		Dir: t.TempDir(), Heap: "512m", Flags: servers.QuickStart,
		Config: map[string]any{"accord": map[string]any{"enabled": true,
			"default_transactional_mode": "full"}},
	})
	options := optionsFor(t, servers.ForTest(t, node, err).Addr())
	create(t, options)
	open(t, options).Close() // the default of the server is not that of the table
	cassandra.Exec(t, options, "DROP TABLE processed_messages")
	cassandra.Exec(t, options, "CREATE TABLE processed_messages (consumer_group text, topic "+
		"text, bucket int, message_id blob, "+
		"owner frozen<claim_owner>, PRIMARY KEY ((consumer_group, topic, bucket), message_id))")
	store, err := cassandra.Open(t.Context(), options, prometheus.NewRegistry())
	if err == nil {
		_ = store.Close()
	}
	if err == nil || !strings.Contains(err.Error(), "transactional_mode 'full'") {
		t.Errorf("got %v", err)
	}
}
