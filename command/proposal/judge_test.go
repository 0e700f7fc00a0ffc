package proposal

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/dedup/messageid"
)

var start = time.Date(2026, 11, 2, 8, 0, 0, 0, time.UTC)

// producer makes topics of which it is known where their ID stands.
type producer struct {
	*rand.Rand
	truth   messageid.Source
	records []*kgo.Record
	ignore  bool // what it writes at sending is in the value

	messages  int
	copyShare float64
	set       func(m int, d *draft) // puts the ID of a message in its place
	sends     []func(d *draft)      // decoys that are others each time
	fixed     []func(m int, d *draft)
}

// draft is a record that is being made.
type draft struct {
	headers []kgo.RecordHeader
	key     []byte
	value   map[string]any
	at      time.Time
}

func (d *draft) header(name, value string) {
	d.headers = append(d.headers, kgo.RecordHeader{Key: name, Value: []byte(value)})
}

// in is the object at the path, which is made.
func (d *draft) in(path ...string) map[string]any {
	object := d.value
	for _, name := range path {
		inner, ok := object[name].(map[string]any)
		if !ok {
			inner = map[string]any{}
			object[name] = inner
		}
		object = inner
	}
	return object
}

func (p *producer) uuid() string {
	var b [16]byte
	for i := range b {
		b[i] = byte(p.Uint32())
	}
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

func pick[T any](p *producer, of ...T) T { return of[p.IntN(len(of))] }

// ids are as many different ones.
func (p *producer) ids() []string {
	all := make([]string, p.messages)
	form, base := p.IntN(3), p.IntN(1_000_000)
	for i := range all {
		switch form {
		case 0:
			all[i] = p.uuid()
		case 1:
			all[i] = fmt.Sprint(100_000_000 + base + i)
		case 2:
			all[i] = fmt.Sprintf("ord-%08x", uint32(base+i*7919))
		}
	}
	return all
}

func newProducer(seed uint64) *producer {
	p := &producer{Rand: rand.New(rand.NewPCG(seed, 7))}
	p.messages = 200 + p.IntN(1500)
	p.copyShare = pick(p, 0, 0.03, 0.1, 0.3)
	p.choose()
	p.decoys()
	p.send()
	return p
}

// choose settles where the ID stands.
func (p *producer) choose() {
	ids := p.ids()
	field := func(path ...string) func(int, *draft) {
		last := len(path) - 1
		return func(m int, d *draft) { d.in(path[:last]...)[path[last]] = ids[m] }
	}
	switch p.IntN(8) {
	case 0, 1:
		name := pick(p, "message-id", "X-Message-Id", "event_id", "Idempotency-Key", "uid", "ce_id")
		p.truth = messageid.Source{From: "header", Name: name}
		p.set = func(m int, d *draft) { d.header(name, ids[m]) }
	case 2:
		p.truth = messageid.Source{From: "key"}
		p.set = func(m int, d *draft) { d.key = []byte(ids[m]) }
	case 3:
		name := pick(p, "id", "order_id", "eventId", "uuid", "orderID")
		p.truth, p.set = messageid.Source{From: "json", Path: name}, field(name)
	case 4:
		outer, name := pick(p, "meta", "order", "event"), pick(p, "id", "event_id")
		p.truth = messageid.Source{From: "json", Path: outer + "." + name}
		p.set = field(outer, name)
	case 5:
		p.truth = messageid.Source{From: "json", Path: "payload|json.id"}
		p.set = func(m int, d *draft) {
			d.value["payload"] = fmt.Sprintf(`{"id":%q,"n":%d}`, ids[m], m%9)
		}
	case 6:
		p.truth = messageid.Source{From: "json", Path: "id", Part: "key"}
		p.set = func(m int, d *draft) { d.key = fmt.Appendf(nil, `{"id":%q}`, ids[m]) }
	case 7:
		p.copyShare = max(p.copyShare, 0.03)
		p.truth = messageid.Source{From: "composite", Parts: []messageid.Source{
			{From: "header", Name: "tenant"}, {From: "json", Path: "order_no"}}}
		p.set = func(m int, d *draft) {
			d.header("tenant", fmt.Sprintf("t%d", m%7))
			d.value["order_no"] = 1000 + m/7
		}
	}
}

// decoys adds what looks like an ID, or like nothing.
func (p *producer) decoys() {
	maybe := func(add func()) {
		if p.IntN(2) == 0 {
			add()
		}
	}
	fix := func(set func(m int, d *draft)) { p.fixed = append(p.fixed, set) }
	send := func(set func(d *draft)) { p.sends = append(p.sends, set) }
	traces := p.ids()
	maybe(func() { fix(func(m int, d *draft) { d.header("trace-id", traces[m/3]) }) })
	maybe(func() { fix(func(m int, d *draft) { d.header("source", "shop") }) })
	maybe(func() { fix(func(m int, d *draft) { d.header("kind", pick(p, "a", "b")) }) })
	maybe(func() { send(func(d *draft) { d.header("attempt-id", p.uuid()) }) })
	maybe(func() { send(func(d *draft) { d.header("sent-at", d.at.Format(time.RFC3339Nano)) }) })
	maybe(func() { send(func(d *draft) { d.header("ts", fmt.Sprint(d.at.UnixMilli())) }) })
	sent := 0
	maybe(func() { send(func(d *draft) { sent++; d.header("send-no", fmt.Sprint(sent)) }) })
	if p.copyShare > 0 { // else nothing tells it from an ID
		maybe(func() { send(func(d *draft) { d.header("x-id", p.uuid()) }) })
	}
	fix(func(m int, d *draft) {
		if d.key == nil {
			d.key = fmt.Appendf(nil, "customer-%d", m%(p.messages/5))
		}
		d.value["customer_id"] = fmt.Sprintf("c-%d", m%(p.messages/4))
		d.value["amount"] = m * 37 % 5000
		d.value["status"] = []string{"new", "paid", "sent"}[m%3]
		d.value["created_at"] = start.Add(time.Duration(m) * time.Second).Format(time.RFC3339)
	})
	if p.copyShare > 0 && p.IntN(3) == 0 {
		p.ignore = true
		send(func(d *draft) { d.value["sent_at"] = d.at.UnixMilli() })
		maybe(func() { send(func(d *draft) { d.value["attempt"] = p.IntN(4) }) })
	}
}

func (p *producer) send() {
	partitions := int32(1 + p.IntN(8))
	var order []int
	for m := range p.messages {
		order = append(order, m)
		if p.Float64() < p.copyShare {
			order = append(order, max(0, m-p.IntN(50)))
		}
	}
	for i, m := range order {
		d := &draft{value: map[string]any{},
			at: start.Add(time.Duration(i)*1300*time.Millisecond + time.Duration(p.IntN(1000)))}
		p.set(m, d)
		for _, fixed := range p.fixed {
			fixed(m, d)
		}
		for _, send := range p.sends {
			send(d)
		}
		value, err := json.Marshal(d.value)
		if err != nil {
			panic(err)
		}
		p.records = append(p.records, &kgo.Record{Topic: "shop.orders",
			Partition: p.Int32N(partitions), Timestamp: d.at, Headers: d.headers, Key: d.key,
			Value: value})
	}
}

// An ID that is proposed wrongly loses messages, so it must be found among whatever else there is.
func TestTheIDIsFoundAmongDecoys(t *testing.T) {
	for seed := range uint64(150) {
		p := newProducer(seed)
		j := Judge(Sample{Topic: "shop.orders", Records: p.records}, start.Add(24*time.Hour), nil)
		if len(j.Choices) == 0 {
			t.Errorf("seed %d: nothing is proposed, want %v\n%s", seed, p.truth, told(j))
			continue
		}
		first := j.Choices[0]
		if !reflect.DeepEqual(first.Source(), p.truth) {
			t.Errorf("seed %d, copies %.2f: got %v, want %v\n%s", seed, p.copyShare, first.Source(),
				p.truth, told(j))
		}
		if p.ignore && first.Same > 0 && len(first.Ignore) == 0 {
			t.Errorf("seed %d: what differs between copies is not left out\n%s", seed, told(j))
		}
	}
}

func told(j Judgement) string {
	var b strings.Builder
	for _, c := range j.Choices {
		fmt.Fprintf(&b, "  %6.1f %s: %s\n", c.score, c, c.Seen())
	}
	for _, c := range j.Refused {
		fmt.Fprintf(&b, "  not %s: %s (%s)\n", c, c.Refused, c.Seen())
	}
	return b.String()
}

// The sample of a test is a number of messages, each sent at least once.
func sampleOf(records ...*kgo.Record) Sample {
	for i, r := range records {
		r.Topic, r.Offset = "orders", int64(i)
		r.Timestamp = start.Add(time.Duration(i) * time.Minute)
	}
	return Sample{Topic: "orders", Records: records}
}

func judged(records ...*kgo.Record) Judgement {
	return Judge(sampleOf(records...), start.Add(24*time.Hour), nil)
}

func TestWhatIsProposed(t *testing.T) {
	header := func(name, value string) kgo.RecordHeader {
		return kgo.RecordHeader{Key: name, Value: []byte(value)}
	}
	random := &producer{Rand: rand.New(rand.NewPCG(1, 1))}
	repeat := func(n int, one func(i int) *kgo.Record) (all []*kgo.Record) {
		for i := range n {
			all = append(all, one(i))
		}
		return all
	}
	for _, row := range []struct {
		name    string
		records []*kgo.Record
		want    string // the first choice; empty if there is none
		says    string // of it, or of what is refused
	}{
		{"nothing without records", nil, "", ""},
		{
			"a key with updates is none", repeat(100, func(i int) *kgo.Record {
				return &kgo.Record{Key: fmt.Appendf(nil, "order-%d", i%30), Value: fmt.Appendf(nil,
					`{"order_id":"order-%d","event_id":%q,"version":%d}`, i%30, random.uuid(), i/30)}
			}),
			"JSON field event_id", "it names what several messages are about",
		},
		{
			"heartbeats are no copies", repeat(500, func(i int) *kgo.Record {
				return &kgo.Record{Key: fmt.Appendf(nil, "device-%d", i%20), Value: []byte("up"),
					Headers: []kgo.RecordHeader{header("message-id", random.uuid())}}
			}),
			"header message-id", "no copies",
		},
		{
			"heartbeats without an ID", repeat(500, func(i int) *kgo.Record {
				return &kgo.Record{Key: fmt.Appendf(nil, "device-%d", i%20), Value: []byte("up")}
			}),
			"", "it has only 20 different values",
		},
		{
			"texts without an ID", repeat(300, func(i int) *kgo.Record {
				return &kgo.Record{Value: fmt.Appendf(nil, "line %d of a log", i*7%260),
					Headers: []kgo.RecordHeader{header("send", random.uuid())}}
			}),
			"the hash of the value", "it names the sending",
		},
		{
			"an ID that is believed for its name", repeat(300, func(i int) *kgo.Record {
				return &kgo.Record{Value: fmt.Appendf(nil, "line %d of a log", i*7%260),
					Headers: []kgo.RecordHeader{header("message-id", random.uuid())}}
			}),
			"header message-id", "differs on 40 records with the key and the value of an earlier",
		},
		{
			"tombstones do not speak against a field", repeat(200, func(i int) *kgo.Record {
				if i%3 == 0 {
					return &kgo.Record{Key: fmt.Appendf(nil, "k%d", i%50)}
				}
				return &kgo.Record{Key: fmt.Appendf(nil, "k%d", i%50),
					Value: fmt.Appendf(nil, `{"id":%q}`, random.uuid())}
			}),
			"JSON field id", "on all 133 records",
		},
		{
			"the first choice is not on all records", repeat(200, func(i int) *kgo.Record {
				id := random.uuid()
				r := &kgo.Record{Value: fmt.Appendf(nil, `{"order_id":%q}`, id)}
				if i > 0 {
					r.Headers = []kgo.RecordHeader{header("message-id", id)}
				}
				return r
			}),
			"header message-id",
			"Without it 1 record becomes a dead letter. The JSON field order_id is on all.",
		},
		{
			"a field that only some have is none", repeat(200, func(i int) *kgo.Record {
				value := fmt.Sprintf(`{"id":%q`, random.uuid())
				if i%3 == 0 {
					value += fmt.Sprintf(`,"message_id":%q`, random.uuid())
				}
				return &kgo.Record{Value: []byte(value + "}")}
			}),
			"JSON field id", "it is on 67 of 200 records only",
		},
	} {
		t.Run(row.name, func(t *testing.T) {
			j := judged(row.records...)
			got := ""
			if len(j.Choices) > 0 {
				got = j.Choices[0].String()
			}
			text := told(j)
			for _, c := range j.Choices {
				text += c.Doubt
			}
			if got != row.want || !strings.Contains(text, row.says) {
				t.Errorf("got %q, want %q, and %q in\n%s", got, row.want, row.says, text)
			}
		})
	}
}

// What is found must be what the extractor finds.
func FuzzEveryPlaceThatIsFoundHasAnID(f *testing.F) {
	f.Add([]byte(`{"a.b":{"$c":"x","|json":1},"d":"{\"e[0]\":\"y\"}","":2,"f":{"":1}}`), "h")
	f.Add([]byte("\x00\x00\x00\x00\x07{\"id\":\"\\ud800\"}"), "")
	f.Fuzz(func(t *testing.T, value []byte, header string) {
		r := &kgo.Record{Key: value, Value: value,
			Headers: []kgo.RecordHeader{{Key: header, Value: value}}}
		for _, finder := range Finders() {
			finder.Find(r, func(p Place) {
				extractor, err := messageid.New(p.Source())
				if err != nil {
					t.Fatalf("%v: %v", p, err)
				}
				if _, missing := extractor.Extract(r); missing == dedup.MissingAbsent ||
					missing == dedup.MissingUnparsable {
					t.Errorf("%v of %q: %v", p, value, missing)
				}
			})
		}
	})
}
