package proposal

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/goleak"

	"github.com/kdedup/kdedup/connect/logreader"
	"github.com/kdedup/kdedup/dedup/messageid"
	"github.com/kdedup/kdedup/internal/testkit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestASampleIsTheNewestOfEveryPartitionWithinItsLimits(t *testing.T) {
	testkit.Kafkas(t, 1, func(t *testing.T, brokers []string) {
		topic, client := testkit.Topic(t, brokers, "sample", 4, nil),
			testkit.KafkaClient(t, brokers)
		connection := []kgo.Opt{kgo.SeedBrokers(brokers...)}
		read := func(l Limits) Sample {
			t.Helper()
			s, err := Read(t.Context(), client, connection, topic, l)
			if err != nil {
				t.Fatal(err)
			}
			return s
		}
		if s := read(DefaultLimits); len(s.Records) != 0 || !s.Whole {
			t.Errorf("of an empty topic: %d records, %t", len(s.Records), s.Whole)
		}
		var records []*kgo.Record
		for i := range 1000 {
			records = append(records, &kgo.Record{Topic: topic, Partition: int32(i % 4),
				Value: bytes.Repeat([]byte{byte(i)}, 1000)})
		}
		if err := client.ProduceSync(t.Context(), records...).FirstErr(); err != nil {
			t.Fatal(err)
		}
		for _, row := range []struct {
			limits Limits
			want   int
			whole  bool
			cut    string
		}{
			{Limits{2000, 64 << 20, time.Minute}, 1000, true, ""},
			{Limits{200, 64 << 20, time.Minute}, 200, false, ""},
			{Limits{1000, 300_000, time.Minute}, 300, false, "records are large"},
			{Limits{50, 20_000, time.Minute}, 20, false, "records are large"},
		} {
			s := read(row.limits)
			if len(s.Records) != row.want || s.Whole != row.whole || s.Cut != row.cut {
				t.Errorf("%+v: %d records, %t, %q", row.limits, len(s.Records), s.Whole, s.Cut)
			}
			found := make(map[int32]int64)
			for _, r := range s.Records {
				found[r.Partition] = max(found[r.Partition], r.Offset)
			}
			if row.want > 100 && (len(found) != 4 || found[3] != 249) {
				t.Errorf("%+v: the last offsets are %v", row.limits, found)
			}
		}
	})
}

func TestTheWindowCoversCopiesAndRetention(t *testing.T) {
	extractor, err := messageid.New(messageid.Source{From: "key"})
	if err != nil {
		t.Fatal(err)
	}
	for name, row := range map[string]struct {
		apart   time.Duration // of two copies; 0: there are none
		keeping Keeping
		want    time.Duration
		says    string
	}{
		"no copies":            {0, 0, 7 * day, "has no copies"},
		"copies that are near": {time.Hour, Keeping(day), 7 * day, "copies come up to 1 h"},
		"copies far apart":     {5 * day, 0, 10 * day, "twice that"},
		"a longer retention":   {0, Keeping(13*day + 1), 14 * day, "is as long"},
		"years":                {0, Keeping(365 * day), 7 * day, "keeps records for 365 d"},
		"for ever":             {0, -1, 7 * day, "for ever"},
	} {
		t.Run(name, func(t *testing.T) {
			first := &kgo.Record{Key: []byte("a"), Timestamp: start}
			second := &kgo.Record{Key: []byte("a"), Timestamp: start.Add(row.apart)}
			if row.apart == 0 {
				second.Key = []byte("b")
			}
			s := Sample{Topic: "orders", Records: []*kgo.Record{first, second}}
			s.log.Partitions = map[int32]logreader.Range{0: {End: 2}}
			w, err := s.Window(t.Context(), extractor, row.keeping, start.Add(20*day))
			if err != nil {
				t.Fatal(err)
			}
			if text := strings.Join(w.Why, " "); w.TTL != row.want ||
				!strings.Contains(text, row.says) {
				t.Errorf("got %s, want %s with %q: %s", w.TTL, row.want, row.says, text)
			}
		})
	}
}
