package postgres_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/kdedup/kdedup/dedup/postgres"
	"github.com/kdedup/kdedup/internal/testkit"
)

func TestSetupIsSafeToRepeatAndDryRunChangesNothing(t *testing.T) {
	options := optionsFor(t, testkit.Postgres(t))
	run := func(dryRun bool) (lines []string) {
		t.Helper()
		if err := postgres.Setup(t.Context(), options, dryRun, func(line string) {
			first, _, _ := strings.Cut(line, ":")
			lines = append(lines, strings.ReplaceAll(first, options.Schema, "S"))
		}); err != nil {
			t.Fatal(err)
		}
		return lines
	}
	t.Cleanup(func() {
		execute(t, connect(t, options.Hosts[0]), "DROP SCHEMA IF EXISTS "+options.Schema+" CASCADE")
	})
	parts := []string{"schema S", "table S.processed_messages",
		"index S.processed_messages_expires_at", "table S.dedup_scopes"}
	want := func(before, after string) (lines []string) {
		for _, part := range parts {
			lines = append(lines, before+part+after)
		}
		return lines
	}
	for _, step := range []struct {
		dryRun bool
		want   []string
	}{
		{true, want("would create ", "")}, {true, want("would create ", "")},
		{false, want("created ", "")}, {false, want("", " exists")}, {true, want("", " exists")},
	} {
		if diff := cmp.Diff(step.want, run(step.dryRun)); diff != "" {
			t.Error(diff)
		}
	}
}

func TestSetupsAtTheSameTimeAllSucceed(t *testing.T) {
	options := optionsFor(t, testkit.Postgres(t))
	errs := make(chan error, 4)
	for range cap(errs) {
		go func() { errs <- postgres.Setup(t.Context(), options, false, func(string) {}) }()
	}
	for range cap(errs) {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	create(t, options)
}

// Each case breaks a good place in its way; the error names the remedy.
func TestOpenRefusesWhatCannotKeepThePromise(t *testing.T) {
	host := testkit.Postgres(t)
	table := func(sql string) func(*testing.T, *postgres.Options) {
		return func(t *testing.T, o *postgres.Options) {
			conn := connect(t, o.Hosts[0])
			execute(t, conn, "SET search_path = "+o.Schema)
			execute(t, conn, sql)
		}
	}
	for _, c := range []struct {
		name   string
		change func(*testing.T, *postgres.Options)
		want   string
	}{
		{"no database", func(_ *testing.T, o *postgres.Options) { o.Database = "nowhere" },
			`database "nowhere" does not exist`},
		{"no table", func(_ *testing.T, o *postgres.Options) { o.Table = "other" },
			".other does not exist; create it with: kdedup setup -c FILE"},
		{"no schema", func(_ *testing.T, o *postgres.Options) {
			o.Schema = "nowhere"
		}, "table nowhere.processed_messages does not exist; create it with: kdedup setup -c FILE"},
		{"no scopes", table("DROP TABLE dedup_scopes"),
			".dedup_scopes does not exist; create it with: kdedup setup -c FILE"},
		{"other columns", table("ALTER TABLE processed_messages ALTER expires_at TYPE timestamp"),
			"name another table in store.postgres.table"},
		{"no unique ids", table("ALTER TABLE processed_messages DROP CONSTRAINT " +
			"processed_messages_pkey, ADD PRIMARY KEY (scope, message_id, expires_at)"),
			"has no unique index on (scope, message_id)"},
		{"unlogged", table("ALTER TABLE processed_messages SET UNLOGGED"), "run: ALTER TABLE "},
		{"no rights", func(t *testing.T, o *postgres.Options) { o.Username = newRole(t, *o, "") },
			"permission denied for schema"},
		{"too few rights", func(t *testing.T, o *postgres.Options) {
			o.Username = newRole(t, *o, "")
			conn := connect(t, o.Hosts[0])
			execute(t, conn, "GRANT USAGE ON SCHEMA "+o.Schema+" TO "+o.Username)
			execute(t, conn, "GRANT SELECT, INSERT, UPDATE ON ALL TABLES IN SCHEMA "+o.Schema+
				" TO "+o.Username)
		}, "may not DELETE; run: GRANT "},
		{"commits that do not wait", func(t *testing.T, o *postgres.Options) {
			o.Username = newRole(t, *o, "synchronous_commit = off")
		}, "SET synchronous_commit = on"},
		{"a standby", func(t *testing.T, o *postgres.Options) {
			o.Username = newRole(t, *o, "default_transaction_read_only = on")
		}, "read only"},
		{"nobody there", func(_ *testing.T, o *postgres.Options) {
			o.Hosts = []string{"127.0.0.1:1"}
		}, "connection refused"},
	} {
		t.Run(c.name, func(t *testing.T) {
			options := optionsFor(t, host)
			create(t, options)
			options.Password = "s3cr3t"
			c.change(t, &options)
			store, err := postgres.Open(t.Context(), options, prometheus.NewRegistry())
			if err == nil {
				_ = store.Close()
			}
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
			if err != nil && strings.Contains(err.Error(), "s3cr3t") {
				t.Errorf("the error shows the password: %v", err)
			}
		})
	}
}

// Of several hosts the first that takes writes is used.
func TestAHostThatIsAwayIsPassedOver(t *testing.T) {
	options := optionsFor(t, testkit.Postgres(t))
	create(t, options)
	options.Hosts = []string{"127.0.0.1:1", options.Hosts[0]}
	if err := open(t, options).Register(t.Context(), scope); err != nil {
		t.Error(err)
	}
}
