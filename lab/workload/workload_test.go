package workload

import (
	"encoding/binary"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/goleak"

	"github.com/kdedup/kdedup/internal/testkit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestSpecsNameEveryMistake(t *testing.T) {
	if err := Default().Validate(); err != nil {
		t.Errorf("the default: %v", err)
	}
	err := Spec{Records: 0, Size: 7, Partitions: 0, Duplicates: 1, Hot: 5, IDBytes: 15}.Validate()
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{
		"records must be at least 1, got 0", "size must be at least 8, got 7",
		"partitions must be at least 1, got 0",
		"duplicates must be 0 to 0.99, got 1", "hot must be 0 to less than records, got 5",
		"id-bytes must be at least 16, got 15",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is missing in %q", want, err)
		}
	}
}

// shape is what a sequence of records consists of.
type shape struct {
	records, messages, hot int
	partitions             map[int32]bool
}

func shapeOf(s Spec) shape {
	found := shape{partitions: make(map[int32]bool)}
	for it := range s.items() {
		found.records++
		found.messages = max(found.messages, it.message+1)
		found.partitions[it.partition] = true
		if it.place > 0 && it.message == 0 {
			found.hot++
		}
	}
	return found
}

func TestTheSharesAreThoseOfTheSpec(t *testing.T) {
	s := Default()
	s.Records = 100_000
	got := shapeOf(s)
	if got.records != 100_000 || got.messages < 89_000 || got.messages > 91_000 ||
		len(got.partitions) != 8 {
		t.Errorf("10 %% of copies: %+v", got)
	}
	s.Duplicates = 0
	if got := shapeOf(s); got.messages != got.records {
		t.Errorf("no copies: %+v", got)
	}
	s.Hot = 40_000
	if got := shapeOf(s); got.hot != 40_000 || got.messages != 60_000 {
		t.Errorf("40,000 copies of the first: %+v", got)
	}
	s.Duplicates, s.Hot = 0.99, 0
	if got := shapeOf(s); got.messages < 800 || got.messages > 1200 {
		t.Errorf("99 %% of copies: %+v", got)
	}
}

func TestEqualSpecsMakeEqualRecordsAndSeedsDiffer(t *testing.T) {
	collect := func(seed uint64) (all []string) {
		s := Default()
		s.Records, s.Seed = 500, seed
		s.Each("orders", func(r *kgo.Record) bool {
			digest := testkit.Digest(r)
			all = append(all, string(digest[:]))
			return true
		})
		return all
	}
	if !slices.Equal(collect(1), collect(1)) {
		t.Error("the same seed made other records")
	}
	if slices.Equal(collect(1), collect(2)) {
		t.Error("another seed made the same records")
	}
}

func TestIDs(t *testing.T) {
	for _, c := range []struct {
		name    string
		length  int
		ordered bool
	}{
		{"UUIDv4", 36, false}, {"UUIDv7", 36, true}, {"short", 16, false},
		{"short in order", 16, true},
		{"odd", 33, false}, {"long", 256, false}, {"long in order", 256, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := Spec{IDBytes: c.length, Ordered: c.ordered, Seed: 1}
			seen := make(map[string]bool)
			var ids []string
			for message := range 20_000 {
				id := s.ID(message)
				if len(id) != c.length || seen[id] {
					t.Fatalf("message %d has the ID %q", message, id)
				}
				seen[id] = true
				if message%10 == 0 { // one of each millisecond
					ids = append(ids, id)
				}
			}
			if sorted := slices.IsSorted(ids); sorted != c.ordered {
				t.Errorf("sorted: %v, want %v", sorted, c.ordered)
			}
		})
	}
	if id := (Spec{IDBytes: 36, Seed: 1}).ID(7); id[14] != '4' || strings.Count(id, "-") != 4 {
		t.Errorf("%q is no UUIDv4", id)
	}
}

func TestValuesHaveTheirLengthAndDiffer(t *testing.T) {
	for _, size := range []int{8, 9, 200, 10_000} {
		s := Spec{Size: size, Seed: 1}
		a, b := s.Value(1), s.Value(2)
		if len(a) != size || string(a) == string(b) || binary.BigEndian.Uint64(a) != 1 {
			t.Errorf("%d bytes: %q, %q", size, a, b)
		}
	}
}

// clean produces the first copies of a small workload, changed by the case, and checks them.
func clean(t *testing.T, brokers []string, change func([]*kgo.Record) []*kgo.Record) Found {
	t.Helper()
	s := Default()
	s.Records, s.Partitions = 300, 2
	topic := testkit.Topic(t, brokers, "clean", 2, nil)
	var records []*kgo.Record
	messages := 0
	seen := make(map[string]bool)
	s.Each(topic, func(r *kgo.Record) bool {
		if id := string(r.Headers[0].Value); !seen[id] {
			seen[id] = true
			messages++
			records = append(records, r)
		}
		return true
	})
	produce(t, brokers, change(records))
	found, err := s.Check(t.Context(), []kgo.Opt{kgo.SeedBrokers(brokers...)}, topic, messages)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func produce(t *testing.T, brokers []string, records []*kgo.Record) {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(brokers...),
		kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if err := client.ProduceSync(t.Context(), records...).FirstErr(); err != nil {
		t.Fatal(err)
	}
}

func TestTheCheckFindsEveryKindOfMistake(t *testing.T) {
	_, brokers := testkit.FakeKafka(t)
	for _, c := range []struct {
		name   string
		change func([]*kgo.Record) []*kgo.Record
		want   Found
	}{
		{"nothing wrong", func(all []*kgo.Record) []*kgo.Record { return all }, Found{}},
		{"lost", func(all []*kgo.Record) []*kgo.Record { return slices.Delete(all, 5, 8) },
			Found{Lost: 3}},
		{"doubled", func(all []*kgo.Record) []*kgo.Record { return append(all, all[len(all)-1]) },
			Found{Doubled: 1, Misplaced: 1}},
		{"a changed value", func(all []*kgo.Record) []*kgo.Record {
			all[3].Value[50] ^= 1
			return all
		}, Found{Changed: 1}},
		{"a changed ID", func(all []*kgo.Record) []*kgo.Record {
			all[3].Headers[0].Value[0] ^= 1
			return all
		}, Found{Changed: 1}},
		{"a header less", func(all []*kgo.Record) []*kgo.Record {
			all[3].Headers = nil
			return all
		}, Found{Changed: 1}},
		{"headers in another order", func(all []*kgo.Record) []*kgo.Record {
			slices.Reverse(all[3].Headers)
			return all
		}, Found{Changed: 1}},
		{"no value", func(all []*kgo.Record) []*kgo.Record { all[3].Value = nil; return all },
			Found{Lost: 1, Changed: 1}},
		{"another turn", func(all []*kgo.Record) []*kgo.Record {
			for _, r := range all {
				r.Partition = 0
			}
			all[3], all[4] = all[4], all[3]
			return all
		}, Found{Misplaced: 1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := clean(t, brokers, c.change)
			got.Records = 0
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if (got.Err() == nil) != (c.want == Found{}) {
				t.Errorf("error: %v", got.Err())
			}
		})
	}
}

func TestAFilledTopicHoldsTheRecordsOfItsSpec(t *testing.T) {
	_, brokers := testkit.FakeKafka(t)
	topic := testkit.Topic(t, brokers, "orders", 8, nil)
	s := Default()
	s.Records, s.Duplicates = 2000, 0
	connection := []kgo.Opt{kgo.SeedBrokers(brokers...)}
	messages, err := s.Fill(t.Context(), connection, topic, nil)
	if err != nil || messages != 2000 {
		t.Fatalf("%d messages, %v", messages, err)
	}
	found, err := s.Check(t.Context(), connection, topic, messages)
	if want := (Found{Records: 2000}); err != nil || found != want {
		t.Errorf("got %+v, %v", found, err)
	}
}

func TestATopicThatIsMissingCannotBeRead(t *testing.T) {
	_, brokers := testkit.FakeKafka(t)
	err := Read(t.Context(), []kgo.Opt{kgo.SeedBrokers(brokers...)}, "none",
		func(*kgo.Record) bool {
			return true
		})
	if err == nil || !strings.Contains(err.Error(), "read none: ") {
		t.Errorf("got %v", err)
	}
}

// The offsets of a transaction are committed a little before its records are visible.
func TestReadingWaitsForTransactionsThatEnd(t *testing.T) {
	_, brokers := testkit.FakeKafka(t)
	topic := testkit.Topic(t, brokers, "clean", 1, nil)
	client, err := kgo.NewClient(kgo.SeedBrokers(brokers...), kgo.TransactionalID("one"))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if err := client.BeginTransaction(); err != nil {
		t.Fatal(err)
	}
	if err := client.ProduceSync(
		t.Context(), &kgo.Record{Topic: topic, Value: []byte("v")},
	).FirstErr(); err != nil {
		t.Fatal(err)
	}
	ends, err := kadm.NewClient(client).ListEndOffsets(t.Context(), topic)
	if err != nil {
		t.Fatal(err)
	}
	stable, err := kadm.NewClient(client).ListCommittedOffsets(t.Context(), topic)
	if err != nil {
		t.Fatal(err)
	}
	if _, settled := compareEnds(topic, stable, ends); settled {
		t.Fatal("an open transaction is not noticed")
	}
	ended := make(chan error, 1)
	go func() { ended <- client.EndTransaction(t.Context(), kgo.TryCommit) }()
	n := 0
	if err := Read(t.Context(), []kgo.Opt{kgo.SeedBrokers(brokers...)}, topic,
		func(*kgo.Record) bool {
			n++
			return true
		}); err != nil || n != 1 {
		t.Errorf("%d records, %v", n, err)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
