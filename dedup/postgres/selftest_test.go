package postgres_test

import (
	"testing"

	"github.com/kdedup/kdedup/dedup/selftest"
	"github.com/kdedup/kdedup/internal/testkit"
)

func TestTheSelfTestIsPassedWithTheDocumentedRights(t *testing.T) {
	options := optionsFor(t, testkit.Postgres(t))
	create(t, options)
	admin := connect(t, options.Hosts[0])
	role := newRole(t, options, "")
	execute(t, admin, "GRANT USAGE ON SCHEMA "+options.Schema+" TO "+role)
	execute(t, admin, "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA "+
		options.Schema+" TO "+role)
	options.Username = role
	steps := selftest.Run(t.Context(), open(t, options), "self-test", true)
	if last := steps[len(steps)-1]; !last.Passed {
		t.Errorf("%+v", last)
	}
	for _, table := range []string{"processed_messages", "dedup_scopes"} {
		var rows int
		if err := admin.QueryRow(
			t.Context(), "SELECT count(*) FROM "+options.Schema+"."+table,
		).Scan(&rows); err != nil || rows > 0 {
			t.Errorf("%d rows are left in %s, %v", rows, table, err)
		}
	}
}
