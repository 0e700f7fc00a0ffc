package proposal

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
)

// flatRows are updates of rows, as ExtractNewRecordState passes them on: few states, many changes.
func flatRows(random *rand.Rand, add func(change int) string, headers ...string) (s Sample) {
	s.Topic = "shop.public.orders"
	for change := range 400 {
		if change > 40 && random.IntN(20) == 0 { // a connector starts over
			s.Records = append(s.Records, s.Records[change-10:change]...)
		}
		id := random.IntN(20)
		r := &kgo.Record{Key: fmt.Appendf(nil, `{"id":%d}`, id), Timestamp: start,
			Value: fmt.Appendf(nil, `{"id":%d,"state":"%c"%s}`, id, 'a'+random.IntN(2),
				add(change))}
		for _, name := range headers {
			r.Headers = append(r.Headers, kgo.RecordHeader{Key: name, Value: []byte("postgresql")})
		}
		if random.IntN(30) == 0 {
			r.Value = []byte("null")
		}
		s.Records = append(s.Records, r)
	}
	return s
}

func TestOfRowsThatWereMadeFlatNoHashIsProposed(t *testing.T) {
	for seed := range uint64(20) {
		random := rand.New(rand.NewPCG(seed, 46))
		s := flatRows(random, func(int) string { return "" }, "__debezium.context.connectorName")
		j := Judge(s, start, nil)
		if len(j.Choices) > 0 {
			t.Fatalf("proposed: %s", j.Choices[0])
		}
		told := false
		for _, c := range j.Refused {
			told = told || c.String() == "the hash of the value" &&
				strings.Contains(c.Refused, "add.fields: op,lsn")
		}
		if !told {
			t.Errorf("the remedy is not told: %v", j.Refused)
		}
	}
}

func TestThePlaceOfAChangeIsProposedWhereRowsHaveIt(t *testing.T) {
	for name, c := range map[string]struct {
		add  func(change int) string
		want string
	}{
		"postgresql": {func(n int) string { return fmt.Sprintf(`,"__op":"u","__lsn":%d`, 1000+n) },
			"key with JSON field __op with JSON field __lsn"},
		"mysql": {func(n int) string {
			return fmt.Sprintf(`,"__op":"u","__file":"b.1","__pos":%d,"__row":%d`, n/2, n%2)
		}, "key with JSON field __op with JSON field __file with JSON field __pos with " +
			"JSON field __row"},
		"with its struct": {func(n int) string {
			return fmt.Sprintf(`,"__op":"u","__source_lsn":%d`, 1000+n)
		}, "key with JSON field __op with JSON field __source_lsn"},
	} {
		s := flatRows(rand.New(rand.NewPCG(1, 46)), c.add)
		j := Judge(s, start, nil)
		if len(j.Choices) != 1 || j.Choices[0].String() != c.want {
			t.Errorf("%s: %v; refused %v", name, j.Choices, j.Refused)
		}
	}
}

func TestWhatComesBackToAStateIsTold(t *testing.T) {
	s := Sample{Topic: "states"}
	for n := range 30 {
		s.Records = append(s.Records, &kgo.Record{Key: []byte("k"), Timestamp: start,
			Value: fmt.Appendf(nil, `{"state":%q}`, strings.Repeat("x", n%10))})
	}
	j := Judge(s, start, nil)
	for _, c := range append(j.Refused, j.Choices...) {
		if c.Places[0] == hashPlace && strings.Contains(c.Doubt, "20 records have the value") {
			return
		}
	}
	t.Error("it is not told")
}
