package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/dedup/postgres"
	"github.com/kdedup/kdedup/internal/testkit"
)

// shop is a consumer's database: the claims, and the table of its effects, which by itself takes a
// message any number of times.
type shop struct {
	options postgres.Options
	store   *postgres.Store
	claims  *postgres.TxClaims
	conn    *pgx.Conn // beside the transactions
}

func newShop(t *testing.T, of dedup.Scope) *shop {
	t.Helper()
	s := &shop{options: optionsFor(t, testkit.Postgres(t))}
	create(t, s.options)
	s.store, s.conn = open(t, s.options), connect(t, s.options.Hosts[0])
	execute(t, s.conn, "CREATE TABLE "+s.options.Schema+".effects (id text, partition int)")
	var err error
	if s.claims, err = s.store.TxClaims(t.Context(), of); err != nil {
		t.Fatal(err)
	}
	return s
}

// begin opens a transaction on a connection of its own.
func (s *shop) begin(t *testing.T, options pgx.TxOptions) pgx.Tx {
	t.Helper()
	tx, err := connect(t, s.options.Hosts[0]).BeginTx(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	return tx
}

// apply claims and writes the effects of what is first, as a consumer does.
func (s *shop) apply(
	ctx context.Context, tx pgx.Tx, claims ...dedup.Claim,
) ([]dedup.Verdict, error) {
	judgements, err := s.claims.Claim(ctx, tx, claims)
	if err != nil {
		return nil, err
	}
	var verdicts []dedup.Verdict
	for i, j := range judgements {
		verdicts = append(verdicts, j.Verdict)
		if j.Verdict != dedup.VerdictFirst {
			continue
		}
		if _, err := tx.Exec(
			ctx, "INSERT INTO "+s.options.Schema+".effects VALUES ($1, $2)", string(claims[i].ID),
			claims[i].Owner.Partition,
		); err != nil {
			return nil, err
		}
	}
	return verdicts, nil
}

func (s *shop) mustApply(t *testing.T, tx pgx.Tx, claims ...dedup.Claim) []dedup.Verdict {
	t.Helper()
	verdicts, err := s.apply(t.Context(), tx, claims...)
	if err != nil {
		t.Fatal(err)
	}
	return verdicts
}

// effects lists the partitions whose records had an effect for an ID.
func (s *shop) effects(t *testing.T, id dedup.ID) string {
	t.Helper()
	return query[string](t, s.conn, "SELECT coalesce(string_agg(partition::text, ' '), '') FROM "+
		s.options.Schema+".effects WHERE id = $1", string(id))
}

func commit(t *testing.T, tx pgx.Tx) {
	t.Helper()
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func rollback(t *testing.T, tx pgx.Tx) {
	t.Helper()
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func TestAClaimIsCommittedWithItsEffectOrNotAtAll(t *testing.T) {
	s := newShop(t, scope)
	record, copied := claims(1, 1, 1)[0], claims(1, 1, 2)[0]
	tx := s.begin(t, pgx.TxOptions{})
	s.mustApply(t, tx, record)
	rollback(t, tx)
	if got := s.effects(t, record.ID); got != "" {
		t.Errorf("effects of %q after the rollback", got)
	}
	changed := claims(1, 1, 3)[0]
	changed.Fingerprint = dedup.Fingerprint{1}
	for _, c := range []struct {
		claim dedup.Claim
		want  dedup.Verdict
	}{{copied, dedup.VerdictFirst}, {copied, dedup.VerdictReplay}, {record, dedup.VerdictDuplicate},
		{changed, dedup.VerdictConflict}} {
		tx := s.begin(t, pgx.TxOptions{})
		if got := s.mustApply(t, tx, c.claim); got[0] != c.want {
			t.Errorf("partition %d is %v, want %v", c.claim.Owner.Partition, got[0], c.want)
		}
		commit(t, tx)
	}
	if got := s.effects(t, record.ID); got != "2" {
		t.Errorf("effects of %q, want 2", got)
	}
}

func TestOfEqualIDsInOneTransactionTheFirstIsFirst(t *testing.T) {
	s := newShop(t, scope)
	one, two, other := claims(1, 1, 1)[0], claims(1, 1, 2)[0], claims(9, 1, 1)[0]
	tx := s.begin(t, pgx.TxOptions{})
	got := s.mustApply(t, tx, two, other, one, two)
	got = append(got, s.mustApply(t, tx, one, two)...)
	commit(t, tx)
	first, duplicate, replay := dedup.VerdictFirst, dedup.VerdictDuplicate, dedup.VerdictReplay
	if diff := cmp.Diff(
		[]dedup.Verdict{first, first, duplicate, replay, duplicate, replay}, got,
	); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if got := s.effects(t, one.ID); got != "2" {
		t.Errorf("effects of %q, want 2", got)
	}
}

// The second transaction waits for the first.
func TestTwoTransactionsWithOneID(t *testing.T) {
	repeatable := pgx.TxOptions{IsoLevel: pgx.RepeatableRead}
	serializable := pgx.TxOptions{IsoLevel: pgx.Serializable}
	for _, c := range []struct {
		name    string
		options pgx.TxOptions
		end     func(t *testing.T, s *shop, first pgx.Tx)
		verdict dedup.Verdict
		code    string // of the second one's error
		effects string
	}{
		{"read committed, commit", pgx.TxOptions{}, commitIt, dedup.VerdictDuplicate, "", "1"},
		{"read committed, rollback", pgx.TxOptions{}, rollBackIt, dedup.VerdictFirst, "", "2"},
		{"read committed, broken", pgx.TxOptions{}, breakIt, dedup.VerdictFirst, "", "2"},
		{"repeatable read, commit", repeatable, commitIt, dedup.VerdictDuplicate, "40001", "1"},
		{"repeatable read, rollback", repeatable, rollBackIt, dedup.VerdictFirst, "", "2"},
		{"serializable, commit", serializable, commitIt, dedup.VerdictDuplicate, "40001", "1"},
		{"serializable, rollback", serializable, rollBackIt, dedup.VerdictFirst, "", "2"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newShop(t, scope)
			first, second := s.begin(t, c.options), s.begin(t, c.options)
			s.mustApply(t, first, claims(1, 3, 1)...)
			var verdicts []dedup.Verdict
			done := make(chan error, 1)
			go func() {
				var err error
				verdicts, err = s.apply(t.Context(), second, claims(1, 1, 2)...)
				done <- err
			}()
			waitBlocked(t, s.conn, s.options.Schema)
			c.end(t, s, first)
			err := <-done
			if got := sqlState(err); got != c.code || (c.code == "" && err != nil) {
				t.Fatalf("got SQLSTATE %q of %v, want %q", got, err, c.code)
			}
			if err != nil { // once more, as the caller has to
				rollback(t, second)
				second = s.begin(t, c.options)
				verdicts = s.mustApply(t, second, claims(1, 1, 2)...)
			}
			commit(t, second)
			if verdicts[0] != c.verdict || s.effects(t, claims(1, 1, 0)[0].ID) != c.effects {
				t.Errorf("got %v with effects %q, want %v with %q", verdicts[0],
					s.effects(t, claims(1, 1, 0)[0].ID), c.verdict, c.effects)
			}
		})
	}
}

func commitIt(t *testing.T, _ *shop, tx pgx.Tx)   { commit(t, tx) }
func rollBackIt(t *testing.T, _ *shop, tx pgx.Tx) { rollback(t, tx) }

// breakIt kills the connection of a transaction.
func breakIt(t *testing.T, s *shop, tx pgx.Tx) {
	execute(t, s.conn, "SELECT pg_terminate_backend($1)", int32(tx.Conn().PgConn().PID()))
}

func sqlState(err error) string {
	if server, ok := errors.AsType[*pgconn.PgError](err); ok {
		return server.Code
	}
	return ""
}

func TestARollbackToASavepointFreesTheIDsClaimedSince(t *testing.T) {
	s := newShop(t, scope)
	tx := s.begin(t, pgx.TxOptions{})
	s.mustApply(t, tx, claims(1, 1, 1)...)
	inner, err := tx.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if got := s.mustApply(t, inner, claims(1, 2, 1)...); got[0] != dedup.VerdictReplay ||
		got[1] != dedup.VerdictFirst {
		t.Errorf("got %v", got)
	}
	rollback(t, inner)
	if got := s.mustApply(t, tx, claims(1, 2, 1)...); got[0] != dedup.VerdictReplay ||
		got[1] != dedup.VerdictFirst {
		t.Errorf("after the rollback to the savepoint: %v", got)
	}
	commit(t, tx)
	if one, two := s.effects(t, claims(1, 1, 0)[0].ID),
		s.effects(t, claims(2, 1, 0)[0].ID); one != "1" || two != "1" {
		t.Errorf("effects of %q and %q, want one each", one, two)
	}
}

func TestAnExpiredClaimIsFreeAndComesBackWithARollback(t *testing.T) {
	for _, level := range []pgx.TxIsoLevel{pgx.ReadCommitted, pgx.Serializable} {
		t.Run(string(level), func(t *testing.T) {
			s := newShop(t, scope)
			tx := s.begin(t, pgx.TxOptions{IsoLevel: level})
			s.mustApply(t, tx, claims(1, 1, 1)...)
			commit(t, tx)
			execute(t, s.conn, "UPDATE "+s.options.Schema+
				".processed_messages SET expires_at = now() - interval '1 second'")
			for range 2 {
				tx := s.begin(t, pgx.TxOptions{IsoLevel: level})
				if got := s.mustApply(t, tx, claims(0, 3, 2)...); slices.ContainsFunc(got,
					func(v dedup.Verdict) bool {
						return v != dedup.VerdictFirst
					}) {
					t.Errorf("got %v", got)
				}
				rollback(t, tx)
			}
			owner := query[int](t, s.conn, "SELECT owner_partition FROM "+s.options.Schema+
				".processed_messages")
			if owner != 1 {
				t.Errorf("after the rollback the row's owner is %d, want 1", owner)
			}
		})
	}
}

// The answer to a commit is lost: nobody knows whether it was done. The repetition does.
func TestACommitWithoutAnAnswerIsRepeatedWithoutHarm(t *testing.T) {
	s := newShop(t, scope)
	proxy := testkit.StartProxy(t, s.options.Hosts[0])
	record := claims(1, 1, 1)[0]
	tx, err := connect(t, proxy.Addr()).Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s.mustApply(t, tx, record)
	proxy.LoseNext(func(answer []byte) bool { return strings.Contains(string(answer), "COMMIT") })
	if err := tx.Commit(t.Context()); err == nil {
		t.Fatal("the commit was answered")
	}
	tx = s.begin(t, pgx.TxOptions{})
	if got := s.mustApply(t, tx, record); got[0] != dedup.VerdictReplay {
		t.Errorf("got %v, want a replay", got[0])
	}
	commit(t, tx)
	if got := s.effects(t, record.ID); got != "1" {
		t.Errorf("effects of %q, want 1", got)
	}
}

// The mode of the caller's connection does not matter.
func TestClaimsWorkInEveryModeOfTheConnection(t *testing.T) {
	s := newShop(t, scope)
	for n, mode := range []pgx.QueryExecMode{
		pgx.QueryExecModeCacheStatement, pgx.QueryExecModeDescribeExec, pgx.QueryExecModeExec,
		pgx.QueryExecModeSimpleProtocol,
	} {
		config, err := pgx.ParseConfig("postgres://postgres@" + s.options.Hosts[0] +
			"/postgres?sslmode=disable")
		if err != nil {
			t.Fatal(err)
		}
		config.DefaultQueryExecMode = mode
		conn, err := pgx.ConnectConfig(t.Context(), config)
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []dedup.Verdict{dedup.VerdictFirst, dedup.VerdictReplay} {
			err := pgx.BeginFunc(t.Context(), conn, func(tx pgx.Tx) error {
				got, err := s.apply(t.Context(), tx, claims(n, 1, 1)...)
				if err == nil && got[0] != want {
					t.Errorf("%v: got %v, want %v", mode, got[0], want)
				}
				return err
			})
			if err != nil {
				t.Errorf("%v: %v", mode, err)
			}
		}
		_ = conn.Close(t.Context())
	}
}

// A claim that precedes its effect, as the pipeline's do, would make a message of the other kind a
// replay that never had an effect.
func TestAScopeHasClaimsOfOneKind(t *testing.T) {
	s := newShop(t, scope)
	if err := s.store.Register(t.Context(), scope); !errors.Is(err, dedup.ErrScopeMismatch) {
		t.Errorf("claims of the store in a transactional scope: %v", err)
	}
	other := scope
	other.Name = "of the pipeline"
	if err := s.store.Register(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	if _, err := s.store.TxClaims(t.Context(), other); !errors.Is(err, dedup.ErrScopeMismatch) {
		t.Errorf("transactional claims in a scope of the store: %v", err)
	}
}

func TestClaimsInAMissingTableNameTheRemedy(t *testing.T) {
	s := newShop(t, scope)
	execute(t, s.conn, "DROP TABLE "+s.options.Schema+".processed_messages")
	_, err := s.apply(t.Context(), s.begin(t, pgx.TxOptions{}), claims(0, 3, 1)...)
	if err == nil || !strings.HasPrefix(err.Error(), "claim 3 ids in a transaction: postgres: ") ||
		!strings.HasSuffix(err.Error(), "create it with: kdedup setup -c FILE") {
		t.Errorf("got %v", err)
	}
}

// Consumers with overlapping batches in any order, while their connections are killed at random.
// Claims end all the while.
func TestConsumersWhoseConnectionsAreKilledApplyEveryMessageOnce(t *testing.T) {
	const consumers, ids, batch = 6, 1500, 100
	s := newShop(t, scope)
	pool, err := pgxpool.New(t.Context(), "postgres://postgres@"+s.options.Hosts[0]+
		"/postgres?sslmode=disable&application_name="+s.options.Schema)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	applied, errs := make(chan struct{}, consumers*ids), make(chan error, consumers)
	var killed, broken int
	var mu sync.Mutex
	for n := range consumers {
		go func() {
			random := rand.New(rand.NewPCG(uint64(n), 8))
			list := claims(0, ids, int32(n))
			random.Shuffle(ids, func(i, j int) { list[i], list[j] = list[j], list[i] })
			for part := range slices.Chunk(list, batch) {
				for {
					err := pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
						_, err := s.apply(ctx, tx, part...)
						return err
					})
					if ctx.Err() != nil {
						errs <- fmt.Errorf("consumer %d: %w, %w", n, ctx.Err(), err)
						return
					}
					if code := sqlState(err); code == "40P01" || code == "40001" {
						errs <- fmt.Errorf("consumer %d: %w", n, err)
						return
					}
					if err == nil {
						break
					}
					mu.Lock()
					broken++
					mu.Unlock()
				}
				applied <- struct{}{}
			}
			errs <- nil
		}()
	}
	for left := consumers; left > 0; {
		select {
		case err := <-errs:
			if left--; err != nil {
				t.Error(err)
			}
		case <-applied: // about one kill for two batches
			killed += query[int](t, s.conn, `SELECT count(pg_terminate_backend(pid)) FROM (
    SELECT pid FROM pg_stat_activity WHERE application_name = $1 AND state LIKE 'idle in%' OR wait_event_type = 'Lock' AND application_name = $1
    ORDER BY random() LIMIT (random() + 0.2)::int) AS victims`, s.options.Schema)
		}
	}
	t.Logf("%d connections were killed, %d transactions failed", killed, broken)
	if broken == 0 {
		t.Error("no transaction was hit")
	}
	got := query[string](t, s.conn, "SELECT count(*) || ' of ' || count(DISTINCT id) FROM "+
		s.options.Schema+".effects")
	if want := fmt.Sprintf("%d of %d", ids, ids); got != want {
		t.Errorf("effects: %s, want %s", got, want)
	}
}
