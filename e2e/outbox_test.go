package e2e_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/internal/testkit"
)

// outbox is examples/outbox, on the real servers.
type outbox struct {
	t       *testing.T
	shop    string
	binary  string
	config  string // of kdedup
	env     []string
	db      *pgx.Conn
	admin   *kadm.Client
	brokers []string
}

func setUpOutbox(t *testing.T) *outbox {
	t.Helper()
	dir, server := t.TempDir(), testkit.Postgres(t)
	o := &outbox{
		t: t, shop: testkit.Schema(t), brokers: testkit.Kafka(t),
		binary: filepath.Join(dir, "outbox"), config: filepath.Join(dir, "kdedup.yaml"),
	}
	o.env = append(testkit.Environment(), "KAFKA="+o.brokers[0], "POSTGRES="+server, "SHOP="+o.shop)
	config, err := os.ReadFile("../examples/outbox/kdedup.yaml")
	if err == nil {
		err = os.WriteFile(o.config,
			[]byte(strings.ReplaceAll(string(config), "127.0.0.1:9480", "127.0.0.1:0")), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	o.finish("go", "build", "-o", o.binary, "github.com/kdedup/kdedup/examples/outbox")
	o.finish(o.binary, "setup")
	t.Cleanup(func() { dropDatabase(t, server, o.shop) })
	client, err := kgo.NewClient(kgo.SeedBrokers(o.brokers...))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	o.admin = kadm.NewClient(client)
	// a busy broker shows it later than it makes it
	testkit.Eventually(t, time.Minute, "the input topic", func() bool {
		topics, err := o.admin.ListTopics(t.Context(), o.shop+".orders")
		return err == nil && topics.Error() == nil
	})
	o.finish(kdedup, "setup", "-c", o.config)

	if o.db, err = pgx.Connect(t.Context(), "postgres://postgres@"+server+"/"+o.shop); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = o.db.Close(context.Background()) })
	return o
}

func dropDatabase(t *testing.T, server, name string) {
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, "postgres://postgres@"+server+"/postgres")
	if err != nil {
		t.Error(err)
		return
	}
	defer conn.Close(ctx)
	if _, err := conn.Exec(
		ctx, "DROP DATABASE IF EXISTS "+pgx.Identifier{name}.Sanitize()+" WITH (FORCE)",
	); err != nil {
		t.Error(err)
	}
}

// finish runs a program to its end, which must be a good one.
func (o *outbox) finish(program string, args ...string) {
	o.t.Helper()
	cmd := exec.CommandContext(o.t.Context(), program, args...)
	cmd.Env = o.env
	if out, err := cmd.CombinedOutput(); err != nil {
		o.t.Fatalf("%s: %v\n%s", cmd, err, out)
	}
}

// role is a process that is started again whenever it was killed.
type role struct {
	o       *outbox
	program string
	args    []string
	cmd     *exec.Cmd
	kills   int
}

func (o *outbox) start(program string, args ...string) *role {
	o.t.Helper()
	r := &role{o: o, program: program, args: args}
	r.start()
	o.t.Cleanup(r.end)
	return r
}

func (r *role) start() {
	r.o.t.Helper()
	r.cmd = exec.Command(r.program, r.args...)
	r.cmd.Env, r.cmd.Stdout, r.cmd.Stderr = r.o.env, r.o.t.Output(), r.o.t.Output()
	if err := r.cmd.Start(); err != nil {
		r.o.t.Fatal(err)
	}
}

// kill is kill -9 and a start. A process that has ended by itself has failed.
func (r *role) kill() {
	r.o.t.Helper()
	if err := r.cmd.Process.Kill(); err != nil {
		r.o.t.Fatalf("%s was to be killed: %v", r.cmd, err)
	}
	if err := r.cmd.Wait(); err == nil || err.Error() != "signal: killed" {
		r.o.t.Fatalf("%s ended before it was killed: %v", r.cmd, err)
	}
	r.kills++
	r.start()
}

func (r *role) end() {
	_ = r.cmd.Process.Kill() // it may be over already
	_ = r.cmd.Wait()
}

// stop asks the process to end and expects a good end.
func (r *role) stop() {
	r.o.t.Helper()
	if err := r.cmd.Process.Signal(os.Interrupt); err != nil {
		r.o.t.Fatal(err)
	}
	if err := r.cmd.Wait(); err != nil {
		r.o.t.Errorf("%s: %v", r.cmd, err)
	}
}

// published is how many events the relays have sent, copies included; 0 while a busy broker does
// not tell.
func (o *outbox) published() (n int) {
	ends, err := o.admin.ListEndOffsets(o.t.Context(), o.shop+".orders")
	if err != nil || ends.Error() != nil {
		return 0
	}
	ends.Each(func(end kadm.ListedOffset) { n += int(end.Offset) })
	return n
}

func (o *outbox) count(sql string) (n int) {
	o.t.Helper()
	if err := o.db.QueryRow(o.t.Context(), sql).Scan(&n); err != nil {
		o.t.Fatalf("%s: %v", sql, err)
	}
	return n
}

// ids counts the events on a topic, and how many different ones there are.
func (o *outbox) ids(topic string) (events, different int) {
	o.t.Helper()
	seen := make(map[string]bool)
	testkit.ReadCommitted(o.t, topic, func(r *kgo.Record) {
		events++
		seen[string(r.Headers[0].Value)] = true
	}, kgo.SeedBrokers(o.brokers...))
	return events, len(seen)
}

// Relay, kdedup and consumer are killed with kill -9 while they work. The relay's first kill comes
// between its publishing and its deleting; the others come when something new is on the topic,
// which is often there too.
func TestOutboxWhoseProcessesAreKilledShipsEveryOrderOnce(t *testing.T) {
	testkit.InTurn(t)
	t.Parallel()
	const orders = 600
	o := setUpOutbox(t)
	o.finish(o.binary, "orders", "-n", fmt.Sprint(orders/2))
	relay := o.killedBeforeDeleting()
	clean, consumer := o.start(kdedup, "run", "-c", o.config), o.start(o.binary, "consumer")
	more := o.start(o.binary, "orders", "-n", fmt.Sprint(orders/2))

	random := rand.New(rand.NewPCG(9, 1))
	killRelayAt, killCleanAt, killConsumerAt := 20, 60, 150
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	testkit.Eventually(t, 5*time.Minute, "all orders shipped and mailed", func() bool {
		for range 20 { // the relay is watched more closely than the rest
			<-tick.C
			if n := o.published(); n >= killRelayAt && relay.kills < 25 {
				relay.kill()
				killRelayAt = n + 1 + random.IntN(30)
			}
		}
		shipped := o.count("SELECT count(*) FROM shipments")
		if shipped >= killCleanAt && clean.kills < 2 {
			clean.kill()
			killCleanAt += 200
		}
		if shipped >= killConsumerAt && consumer.kills < 2 {
			consumer.kill()
			killConsumerAt += 200
		}
		return o.count("SELECT count(*) FROM outbox") == 0 &&
			o.count("SELECT count(DISTINCT order_id) FROM mails") == orders
	})
	if err := more.cmd.Wait(); err != nil {
		t.Error(err)
	}
	events, different := o.ids(o.shop + ".orders")
	o.drain()
	for _, r := range []*role{relay, clean, consumer} {
		r.stop()
	}
	t.Logf("%d, %d and %d kills of relay, kdedup and consumer; %d events published", relay.kills,
		clean.kills, consumer.kills, events)
	if events == orders || different != orders {
		t.Errorf("%d events with %d IDs were published: no kill made a copy, or one lost an event",
			events, different)
	}
	if events, different := o.ids(o.shop + ".orders.clean"); events != orders ||
		different != orders {
		t.Errorf("%d events with %d IDs are on the clean topic, want %d", events, different, orders)
	}
	o.compare(orders, consumer.kills)
}

// killedBeforeDeleting starts a relay, keeps it from deleting what it published, and kills it
// there. SHARE MODE lets a reader lock rows and lets nobody delete them.
func (o *outbox) killedBeforeDeleting() *role {
	o.t.Helper()
	tx, err := o.db.Begin(o.t.Context())
	if err == nil {
		_, err = tx.Exec(o.t.Context(), "LOCK TABLE outbox IN SHARE MODE")
	}
	if err != nil {
		o.t.Fatal(err)
	}
	relay := o.start(o.binary, "relay")
	testkit.Eventually(o.t, time.Minute, "events published", func() bool {
		return o.published() > 0
	})
	relay.kill()
	if err := tx.Rollback(o.t.Context()); err != nil {
		o.t.Fatal(err)
	}
	return relay
}

// drain returns when kdedup has handled every event: until then a copy might still come to the
// clean topic.
func (o *outbox) drain() {
	o.t.Helper()
	group := o.shop + "-dedup"
	testkit.Eventually(o.t, time.Minute, "kdedup at the end of its topic", func() bool {
		lags, err := o.admin.Lag(o.t.Context(), group)
		return err == nil && lags.Error() == nil && lags[group].Lag.Total() == 0
	})
}

// compare looks for every order in the shipments, and at the mails, of which each kill of the
// consumer may have repeated the one that was under way.
func (o *outbox) compare(orders, kills int) {
	o.t.Helper()
	type shipped struct{ Orders, Once, Others, Other int }
	rows, err := o.db.Query(o.t.Context(), `SELECT (SELECT count(*) FROM orders),
	count(*) FILTER (WHERE n = 1), count(*) FILTER (WHERE n <> 1), coalesce(sum(other), 0) FROM (
		SELECT count(s.order_id) AS n, count(*) FILTER (WHERE s.item <> o.item) AS other
		FROM orders o LEFT JOIN shipments s ON s.order_id = o.id GROUP BY o.id) AS each`)
	if err != nil {
		o.t.Fatal(err)
	}
	got, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByPos[shipped])
	if err != nil {
		o.t.Fatal(err)
	}
	if diff := cmp.Diff(shipped{Orders: orders, Once: orders}, got); diff != "" {
		o.t.Errorf("shipments: -want +got:\n%s", diff)
	}
	if n := o.count("SELECT count(*) FROM shipments"); n != orders {
		o.t.Errorf("%d shipments, want %d", n, orders)
	}
	if n := o.count("SELECT count(*) FROM mails"); n > orders+kills {
		o.t.Errorf("%d mails, want at most %d", n, orders+kills)
	}
}
