package postgres_test

import (
	"testing"

	"github.com/kdedup/kdedup/internal/testkit"
	"github.com/kdedup/kdedup/internal/testkit/servers"
)

// A server that turns read-only under its sessions does what a demotion does that keeps them.
func TestReadOnlySessionsLeaveThePool(t *testing.T) {
	server := startServer(t, servers.PostgresOptions{Dir: t.TempDir()})
	options := optionsFor(t, server.Addr())
	create(t, options)
	store, watch := open(t, options), connect(t, server.Addr())
	mustClaim(t, store, scope, claims(0, 1, 1))
	sessions := func() []int32 {
		return query[[]int32](t, watch, "SELECT coalesce(array_agg(pid), '{}') FROM "+
			"pg_stat_activity WHERE application_name = 'kdedup'")
	}
	before := sessions()
	execute(t, watch, "ALTER SYSTEM SET default_transaction_read_only = on")
	execute(t, watch, "SELECT pg_reload_conf()")
	testkit.Eventually(t, patience, "the server takes no writes", func() bool {
		_, err := store.Claim(t.Context(), scope, claims(1, 1, 1))
		return err != nil
	})
	testkit.Eventually(t, patience, "the sessions are gone", func() bool {
		return query[int](t, watch, "SELECT count(*) FROM pg_stat_activity WHERE pid = ANY($1)",
			before) == 0
	})
	execute(t, watch, "SET default_transaction_read_only = off")
	execute(t, watch, "ALTER SYSTEM RESET default_transaction_read_only")
	execute(t, watch, "SELECT pg_reload_conf()")
	testkit.Eventually(t, patience, "claims go on", func() bool {
		_, err := store.Claim(t.Context(), scope, claims(1, 1, 1))
		return err == nil
	})
}
