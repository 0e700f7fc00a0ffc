package redrive

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/goleak"

	"github.com/kdedup/kdedup/connect/logreader"
	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/dedup/memory"
	"github.com/kdedup/kdedup/dedup/messageid"
	"github.com/kdedup/kdedup/forwarder"
	"github.com/kdedup/kdedup/internal/testkit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	partitions = 2
	ttl        = time.Hour
)

// rig is a pipeline whose part the test plays.
type rig struct {
	t       *testing.T
	brokers []string
	client  *kgo.Client
	name    string // of the input
	clean   string
	dlq     string
	dup     string
	marks   string
	inputID [16]byte
	store   *memory.Store
	scope   dedup.Scope
	next    int64 // offset of the next record that was on the input
	letters *kgo.Client
}

func newRig(t *testing.T, brokers []string) *rig {
	t.Helper()
	topic := func(name string, n int32, configs map[string]string) string {
		return testkit.Topic(t, brokers, "redrive."+name, n, configs)
	}
	r := &rig{t: t, brokers: brokers, client: testkit.KafkaClient(t, brokers),
		name: topic("orders", partitions, nil), clean: topic("clean", partitions, nil),
		dlq: topic("dlq", partitions, nil), dup: topic("dup", partitions, nil),
		marks: topic("marks", 1, map[string]string{"cleanup.policy": "compact"}),
		store: memory.New(memory.Options{Violation: t.Errorf})}
	r.scope = dedup.Scope{ConsumerGroup: r.name + "-dedup", Name: r.name, TTL: ttl, Buckets: 4,
		Extractor: "header:id"}
	r.inputID = r.describe(r.name).TopicID
	topics := r.topics()
	r.letters = testkit.KafkaClient(t, brokers, topics.Producer()...)
	return r
}

func (r *rig) topics() *forwarder.Topics {
	return &forwarder.Topics{Output: r.clean, DeadLetter: r.dlq, Duplicates: r.dup}
}

func (r *rig) describe(topic string) logreader.Log {
	r.t.Helper()
	log, err := logreader.Describe(r.t.Context(), r.client, topic, logreader.Bounds{})
	if err != nil {
		r.t.Fatal(err)
	}
	return log
}

// record is one that was on the input, of which it is gone.
func (r *rig) record(id, value string) *kgo.Record {
	record := &kgo.Record{Topic: r.name, Partition: int32(r.next % partitions),
		Offset: 1_000_000 + r.next, Key: fmt.Appendf(nil, "key of %s", id), Value: []byte(value),
		Timestamp: time.UnixMilli(time.Now().UnixMilli() - 1000 + r.next),
		Headers:   []kgo.RecordHeader{{Key: "trace", Value: []byte{0, 1}}}}
	if id != "" {
		record.Headers = append(record.Headers, kgo.RecordHeader{Key: "id", Value: []byte(id)})
	}
	r.next++
	return record
}

// dead writes a dead letter, as a lane does.
func (r *rig) dead(record *kgo.Record, reason string) {
	r.t.Helper()
	out := r.topics().NewOutgoing(1)
	if err := out.DeadLetter(record, reason, forwarder.Note{}); err != nil {
		r.t.Fatal(err)
	}
	r.send(out)
}

func (r *rig) dropped(record *kgo.Record, note forwarder.Note) {
	r.t.Helper()
	out := r.topics().NewOutgoing(1)
	out.Duplicate(record, note)
	r.send(out)
}

func (r *rig) send(out *forwarder.Outgoing) {
	r.t.Helper()
	if err := out.Send(r.t.Context(), r.letters, forwarder.Isolation{}); err != nil {
		r.t.Fatal(err)
	}
}

// own is the place of a record that was on the input.
func (r *rig) own(record *kgo.Record) dedup.Coordinates {
	return dedup.Coordinates{TopicID: r.inputID, Partition: record.Partition, Offset: record.Offset}
}

// claim is a lane's, for a record; it returns what the verdict was.
func (r *rig) claim(record *kgo.Record, owner dedup.Coordinates) dedup.Verdict {
	r.t.Helper()
	judgements, err := dedup.New(r.scope, r.store, dedup.Options{Extractor: r.extractor()}).Judge(
		r.t.Context(), []dedup.Message{{Record: record, Owner: owner}})
	if err != nil {
		r.t.Fatal(err)
	}
	return judgements[0].Verdict
}

func (r *rig) extractor() dedup.Extractor {
	r.t.Helper()
	e, err := messageid.New(messageid.Source{From: "header", Name: "id"})
	if err != nil {
		r.t.Fatal(err)
	}
	return e
}

func (r *rig) options(into Into, letters string) Options {
	r.t.Helper()
	target := r.clean
	if into == Input {
		target = r.name
	}
	return Options{
		Connection: func() []kgo.Opt { return []kgo.Opt{kgo.SeedBrokers(r.brokers...)} },
		Letters:    r.describe(letters), Into: into, Input: r.name, InputID: r.inputID,
		Target:      Target{Partitions: partitions, Topics: forwarder.Topics{Output: target}},
		MaxRedrives: 3, Store: r.store, Scope: r.scope, Extractor: r.extractor(),
		Passes: func(v dedup.Verdict) bool {
			return v == dedup.VerdictFirst || v == dedup.VerdictExempt
		},
		Handled: func(dedup.Coordinates, time.Time) bool { return true },
		Marks:   r.marks, TransactionalID: r.scope.ConsumerGroup + "-redrive",
		TransactionTimeout: 20 * time.Second, BatchRecords: 100, BatchBytes: 1 << 20,
		Logger: slog.New(slog.DiscardHandler),
	}
}

func (r *rig) run(o Options) *Report {
	r.t.Helper()
	report, err := Run(r.t.Context(), o)
	if err != nil {
		r.t.Fatal(err)
	}
	adds(r.t, report)
	return report
}

// adds wants every letter in one count.
func adds(t *testing.T, report *Report) {
	t.Helper()
	sum := report.OtherPipelines + report.NotSelected + report.Earlier + report.Redriven
	for _, refused := range report.Refused {
		sum += refused.Letters
		if refused.Remedy == "" {
			t.Errorf("nobody is told what to do about %s", refused.Reason)
		}
	}
	if sum != report.Read {
		t.Errorf("%d letters were read, and %d are accounted for: %+v", report.Read, sum, report)
	}
}

// want compares the counts: redriven, earlier, and the reasons of refusals.
func (r *rig) want(report *Report, redriven, earlier int64, refused ...string) {
	r.t.Helper()
	var reasons []string
	for _, refusal := range report.Refused {
		reasons = append(reasons, fmt.Sprintf("%s %d", refusal.Reason, refusal.Letters))
	}
	slices.Sort(refused)
	if report.Redriven != redriven || report.Earlier != earlier ||
		!slices.Equal(reasons, refused) {
		r.t.Errorf("%d redriven, %d earlier, refused %v; want %d, %d, %v", report.Redriven,
			report.Earlier, reasons, redriven, earlier, refused)
	}
}

// read comes after the markers of what was committed, which brokers write later.
func (r *rig) read(topic string) (records []*kgo.Record) {
	r.t.Helper()
	if err := awaitStable(r.t.Context(), kadm.NewClient(r.client), topic); err != nil {
		r.t.Fatal(err)
	}
	testkit.ReadCommitted(r.t, topic, func(record *kgo.Record) {
		records = append(records, record)
	}, kgo.SeedBrokers(r.brokers...))
	return records
}

// wantOn compares the values on a topic, in any order.
func (r *rig) wantOn(topic string, values ...string) {
	r.t.Helper()
	var got []string
	for _, record := range r.read(topic) {
		got = append(got, string(record.Value))
	}
	slices.Sort(got)
	slices.Sort(values)
	if diff := cmp.Diff(values, got); diff != "" {
		r.t.Errorf("%s -want +got:\n%s", topic, diff)
	}
}

// failing is a store that fails at some calls, and may end a context there.
type failing struct {
	Store
	at func(call string) error
}

func (f failing) Claim(
	ctx context.Context, scope dedup.Scope, claims []dedup.Claim,
) ([]dedup.Answer, error) {
	answers, err := f.Store.Claim(ctx, scope, claims)
	if failed := f.at("claim"); failed != nil { // they stand, and nobody hears of it
		return make([]dedup.Answer, len(claims)), failed
	}
	return answers, err
}

func (f failing) Release(ctx context.Context, scope dedup.Scope, id dedup.ID) error {
	if err := f.Store.Release(ctx, scope, id); err != nil {
		return err
	}
	return f.at("release")
}
