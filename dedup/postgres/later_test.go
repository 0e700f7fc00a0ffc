package postgres_test

import (
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/dedup/postgres"
	"github.com/kdedup/kdedup/internal/testkit"
	"github.com/kdedup/kdedup/internal/testkit/servers"
)

// behindPgbouncer lets the store reach the server through one connection that it shares with all
// other clients.
func behindPgbouncer(t *testing.T, mode string) (options postgres.Options, direct string) {
	t.Helper()
	servers.NeedPgbouncer(t)
	direct = testkit.Postgres(t)
	options = optionsFor(t, direct)
	create(t, options)
	s, err := servers.StartPgbouncer(t.Context(), servers.PgbouncerOptions{Dir: t.TempDir(),
		Upstream: direct, Mode: mode, Connections: 1})
	options.Hosts = []string{servers.ForTest(t, s, err).Addr()}
	return options, direct
}

// noteCommits has the server note how each change of the table waits for the disk when it is
// committed.
func noteCommits(t *testing.T, o postgres.Options, direct string) (noted func() []string) {
	t.Helper()
	conn := connect(t, direct)
	execute(t, conn, "SET search_path = "+o.Schema)
	execute(t, conn, `CREATE TABLE noted (n serial, waits text);
CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    INSERT INTO `+o.Schema+`.noted (waits) VALUES (TG_OP || ' ' || current_setting('synchronous_commit')); RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER note AFTER INSERT OR UPDATE OR DELETE ON processed_messages
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION note();
CREATE CONSTRAINT TRIGGER note AFTER INSERT ON dedup_scopes
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION note()`)
	return func() []string {
		return query[[]string](t, conn, "SELECT array_agg(DISTINCT waits ORDER BY waits) FROM noted")
	}
}

// Another client of a pooler has turned synchronous_commit off for its session, which is ours, too.
func TestWhatIsAnsweredIsDurableWhateverAnotherClientOfThePoolerHasSet(t *testing.T) {
	options, direct := behindPgbouncer(t, "transaction")
	noted := noteCommits(t, options, direct)
	sliding := scope
	sliding.Sliding = true
	store := open(t, options)
	other := connect(t, options.Hosts[0])
	execute(t, other, "SET synchronous_commit = off")
	if got := query[string](t, other, "SHOW synchronous_commit"); got != "off" {
		t.Fatalf("the session has %s", got)
	}
	if err := store.Register(t.Context(), sliding); err != nil {
		t.Fatal(err)
	}
	mustClaim(t, store, sliding, claims(0, 3, 1))
	execute(t, connect(t, direct), "UPDATE "+options.Schema+".processed_messages SET expires_at = "+
		"expires_at - interval '50 minutes'")
	copies := claims(0, 3, 2)
	for i := range copies {
		copies[i].Copied = true
	}
	mustClaim(t, store, sliding, copies) // they renew
	expire(t, atDirect(options, direct), store, 0)
	mustClaim(t, store, sliding, claims(0, 3, 3)) // they take over
	if err := store.Release(t.Context(), sliding, claims(0, 1, 1)[0].ID); err != nil {
		t.Fatal(err)
	}
	if got := query[string](t, other, "SHOW synchronous_commit"); got != "off" {
		t.Errorf("the other client's setting is %s now", got)
	}
	got := noted()
	for _, want := range []string{"DELETE on", "INSERT on", "UPDATE on"} {
		if !slices.Contains(got, want) {
			t.Errorf("%s is missing among %q", want, got)
		}
	}
	for _, one := range got {
		if strings.HasSuffix(one, " off") {
			t.Errorf("%s: not durable", one)
		}
	}
	if another := open(t, options); another == nil { // and a new connection is not refused
		t.Fatal("not opened")
	}
}

func atDirect(o postgres.Options, direct string) postgres.Options {
	o.Hosts = []string{direct}
	return o
}

// The sweep has transactions of several statements, which this mode forbids.
func TestASweepThatCannotWorkTellsHowFarItLagsBehind(t *testing.T) {
	options, direct := behindPgbouncer(t, "statement")
	options.SweepInterval = 50 * time.Millisecond
	printed := &testkit.Printed{}
	options.Logger = slog.New(slog.NewTextHandler(printed, nil))
	store := open(t, options)
	expire(t, atDirect(options, direct), store, 10) // two hours back: an hour ago
	testkit.Eventually(t, patience, "the lag", func() bool {
		lag := testutil.ToFloat64(store.SweepLag())
		return lag > 3500 && lag < 3700
	})
	if got := printed.String(); !strings.Contains(got, "set pool_mode = transaction") {
		t.Errorf("logged: %s", got)
	}
	for _, a := range mustClaim(t, store, scope, claims(0, 10, 2)) {
		if a.Outcome != dedup.Applied {
			t.Errorf("claims go on meanwhile: %+v", a)
		}
	}
}

// What somebody changes while the store is open is refused as what he has changed before.
func TestClaimsWaitWhileATableCannotKeepThem(t *testing.T) {
	options := optionsFor(t, testkit.Postgres(t))
	create(t, options)
	store, conn := open(t, options), connect(t, options.Hosts[0])
	store.WatchEvery(10 * time.Millisecond)
	execute(t, conn, "SET search_path = "+options.Schema)
	mustClaim(t, store, scope, claims(0, 5, 1))
	for _, c := range []struct{ name, broken, fixed, want string }{
		{"unlogged", "ALTER TABLE processed_messages SET UNLOGGED",
			"ALTER TABLE processed_messages SET LOGGED", "is unlogged"},
		{"an ID may be there twice", "ALTER TABLE processed_messages DROP CONSTRAINT " +
			"processed_messages_pkey", "ALTER TABLE processed_messages ADD CONSTRAINT " +
			"processed_messages_pkey PRIMARY KEY (scope, message_id)", "no unique index"},
	} {
		execute(t, conn, c.broken)
		testkit.Eventually(t, patience, "claims that wait: "+c.name, func() bool {
			_, err := store.Claim(t.Context(), scope, claims(0, 5, 1))
			return err != nil && strings.Contains(err.Error(), c.want)
		})
		if _, err := store.Lookup(t.Context(), scope, "id"); err == nil ||
			!strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: a look-up, which readiness asks for: %v", c.name, err)
		}
		execute(t, conn, c.fixed)
		testkit.Eventually(t, patience, "claims again: "+c.name, func() bool {
			_, err := store.Claim(t.Context(), scope, claims(0, 5, 1))
			return err == nil
		})
	}
	if rows := query[int](t, conn, countRows); rows != 5 {
		t.Errorf("%d rows, want 5", rows)
	}
}
