package offsets_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/command/offsets"
	"github.com/kdedup/kdedup/connect/logreader"
	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/internal/testkit"
)

// lifetime of a claim, in offsets of the input.
const lifetime = 200

// past is what happened to an input and its clean topic: everything that tears the order of owners
// apart, at random.
type past struct {
	random  *rand.Rand
	cluster *kfake.Cluster
	options offsets.Options
	client  *kgo.Client
	input   string
	clean   string
	parts   map[int32]*pastOf
}

type pastOf struct {
	in      []*kgo.Record    // as they were written, those of aborted transactions as well
	aborted map[int64]bool   // offsets
	claims  map[string]int64 // owner by ID, at the end
	out     []*kgo.Record
	source  map[*kgo.Record]int64 // the offset of the record that was forwarded
	handled int64
}

// Judge answers as the claims do; what has no ID begins so.
func (p *past) Judge(_ context.Context, messages []dedup.Message) ([]dedup.Judgement, error) {
	judged := make([]dedup.Judgement, len(messages))
	for i, m := range messages {
		owner, known := p.parts[m.Record.Partition].claims[string(m.Record.Value)]
		judged[i] = dedup.Judgement{Verdict: dedup.VerdictFirst, Owner: m.Owner}
		if known {
			judged[i] = dedup.Judgement{Verdict: dedup.VerdictDuplicate,
				Owner: dedup.Coordinates{TopicID: p.options.Input.TopicID,
					Partition: m.Record.Partition, Offset: owner}}
		}
	}
	return judged, nil
}

func newPast(t *testing.T, random *rand.Rand) *past {
	t.Helper()
	cluster, brokers := testkit.FakeKafka(t)
	timestamps := []string{"CreateTime", "CreateTime", "LogAppendTime"}
	policy := []string{"delete", "delete", "compact"}[random.IntN(3)]
	p := &past{random: random, cluster: cluster, parts: make(map[int32]*pastOf),
		input: testkit.Topic(t, brokers, "orders", partitions, map[string]string{
			"cleanup.policy": policy}),
		clean: testkit.Topic(t, brokers, "clean", partitions, map[string]string{
			"message.timestamp.type": timestamps[random.IntN(3)]}),
		client: testkit.KafkaClient(t, brokers)}
	begin := time.Now().Add(-time.Hour)
	for part := range int32(partitions) {
		at := &pastOf{aborted: make(map[int64]bool), claims: make(map[string]int64),
			source: make(map[*kgo.Record]int64)}
		p.parts[part] = at
		p.write(t, brokers, part, begin)
		p.forward(at)
		for _, r := range at.out {
			r.Topic, r.Partition = p.clean, part
		}
		if err := p.client.ProduceSync(t.Context(), at.out...).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	if policy == "compact" {
		cluster.Compact()
	} else if random.IntN(4) == 0 {
		if err := cluster.DeleteRecords(p.input, 0, random.Int64N(200)); err != nil {
			t.Log(err) // the partition has less
		}
	}
	p.describe(t, brokers)
	return p
}

func (p *past) describe(t *testing.T, brokers []string) {
	t.Helper()
	p.options = offsets.Options{Connection: []kgo.Opt{kgo.SeedBrokers(brokers...)}, Judge: p,
		Originals: true, Handled: make(map[int32]int64)}
	for topic, log := range map[string]*logreader.Log{p.input: &p.options.Input,
		p.clean: &p.options.Clean} {
		var err error
		*log, err = logreader.Describe(t.Context(), p.client, topic, logreader.Bounds{})
		if err != nil {
			t.Fatal(err)
		}
	}
	for part, at := range p.parts {
		p.options.Handled[part] = at.handled
	}
}

// write fills a partition of the input: new IDs, copies, IDs that come again after their claim has
// ended, records without an ID, and aborted transactions, at times that are in order by and large.
func (p *past) write(t *testing.T, brokers []string, part int32, begin time.Time) {
	t.Helper()
	at := p.parts[part]
	transactional := testkit.KafkaClient(t, brokers, kgo.TransactionalID(fmt.Sprint("t", part)))
	var ids []string
	for n := 1 + p.random.IntN(900); len(at.in) < n; {
		var records []*kgo.Record
		for range 1 + p.random.IntN(60) {
			id := fmt.Sprintf("%d/%d", part, len(ids))
			switch p.random.IntN(8) {
			case 0:
				id = "none " + id
			case 1, 2, 3:
				if len(ids) > 0 {
					id = ids[max(0, len(ids)-1-p.random.IntN(2*lifetime))]
				}
			}
			ids = append(ids, id)
			after := time.Duration(len(at.in)+len(records))*time.Second +
				time.Duration(p.random.Int64N(int64(8*time.Second)))
			if p.random.IntN(300) == 0 {
				after -= time.Duration(p.random.Int64N(int64(time.Hour)))
			}
			records = append(records, &kgo.Record{Topic: p.input, Partition: part, Key: []byte(id),
				Value: []byte(id), Timestamp: begin.Add(after)})
		}
		abort := p.random.IntN(5) == 0
		client := p.client
		if abort {
			client = transactional
			if err := client.BeginTransaction(); err != nil {
				t.Fatal(err)
			}
		}
		if err := client.ProduceSync(t.Context(), records...).FirstErr(); err != nil {
			t.Fatal(err)
		}
		if abort {
			if err := client.EndTransaction(t.Context(), kgo.TryAbort); err != nil {
				t.Fatal(err)
			}
		}
		for _, r := range records {
			at.aborted[r.Offset] = abort
		}
		at.in = append(at.in, records...)
	}
}

// forward does what the pipeline does, up to a place behind which it has only claimed. A redrive
// sends the letters later.
func (p *past) forward(at *pastOf) {
	var letters []*kgo.Record
	claimed := make(map[string]int64)
	done := at.in[len(at.in)-1].Offset + 1
	at.handled = done - p.random.Int64N(min(done, 30)+1)
	ended := p.random.Int64N(done + 1)
	emit := func(r *kgo.Record, source int64) {
		forwarded := &kgo.Record{Key: r.Key, Value: r.Value, Timestamp: r.Timestamp}
		at.out = append(at.out, forwarded)
		at.source[forwarded] = source
	}
	for _, r := range at.in {
		id := string(r.Value)
		owner, had := at.claims[id]
		alive := had && r.Offset-claimed[id] < lifetime
		// A batch with records of an aborted transaction was given back, and its claims stay.
		stands := alive && at.aborted[owner]
		switch {
		case at.aborted[r.Offset]:
			if p.random.IntN(2) == 0 && !alive {
				at.claims[id], claimed[id] = r.Offset, r.Offset
			}
			continue
		case id[0] == 'n':
		case stands && !p.forwarded(at, id, owner):
		case alive:
			continue
		default:
			at.claims[id], claimed[id] = r.Offset, r.Offset
		}
		switch {
		case r.Offset >= at.handled:
		case p.random.IntN(12) == 0:
			letters = append(letters, r)
		default:
			emit(r, r.Offset)
		}
		if len(letters) > 0 && p.random.IntN(40) == 0 {
			for _, letter := range letters {
				emit(letter, letter.Offset)
			}
			letters = nil
		}
	}
	if p.random.IntN(2) == 0 {
		for _, letter := range letters {
			emit(letter, letter.Offset)
		}
	}
	for id, owner := range at.claims {
		if owner < ended-lifetime {
			delete(at.claims, id)
		}
	}
}

// forwarded reports whether a record has stood for the owner already.
func (p *past) forwarded(at *pastOf, id string, owner int64) bool {
	return slices.ContainsFunc(at.out, func(r *kgo.Record) bool {
		return string(r.Value) == id && at.source[r] > owner
	})
}
