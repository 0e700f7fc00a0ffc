package offsets_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/command/offsets"
	"github.com/kdedup/kdedup/connect/logreader"
	"github.com/kdedup/kdedup/internal/testkit"
)

func TestWhateverThePastAConsumerMissesNothingAndRepeatsWhatIsSaid(t *testing.T) {
	for seed := range uint64(testkit.Number(t, "KDEDUP_OFFSETS_SEEDS", 12)) {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 2))
			p := newPast(t, random)
			for range 4 {
				committed := make(map[int32]int64)
				for part, at := range p.options.Input.Partitions {
					committed[part] = at.Start + random.Int64N(at.End-at.Start+1)
				}
				places, err := offsets.Clean(t.Context(), p.options, committed)
				if err != nil {
					t.Fatal(err)
				}
				for part, place := range places {
					p.checkClean(t, part, committed[part], place)
				}
				for part, at := range p.options.Clean.Partitions {
					committed[part] = random.Int64N(at.End + 1)
				}
				if places, err = offsets.Input(t.Context(), p.options, committed); err != nil {
					t.Fatal(err)
				}
				present := p.present(t)
				for part, place := range places {
					p.checkInput(t, part, committed[part], place, present[part])
				}
			}
		})
	}
}

func (p *past) checkClean(t *testing.T, part int32, committed int64, place offsets.Place) {
	t.Helper()
	var again int64
	for _, r := range p.parts[part].out {
		switch source := p.parts[part].source[r]; {
		case source >= committed && r.Offset < place.Offset:
			t.Fatalf("partition %d, committed %d: the consumer goes on at %d, and misses the record "+
				"at %d, which is of %d", part, committed, place.Offset, r.Offset, source)
		case source < committed && r.Offset >= place.Offset:
			again++
		}
	}
	if again > place.Again {
		t.Errorf("partition %d, committed %d: %d records come again from %d on, not %d at most", part,
			committed, again, place.Offset, place.Again)
	}
}

// present are the offsets of each ID that a consumer of the input sees now.
func (p *past) present(t *testing.T) map[int32]map[string][]int64 {
	t.Helper()
	found := make(map[int32]map[string][]int64)
	err := logreader.Read(t.Context(), p.options.Connection, p.options.Input,
		func(records []*kgo.Record) error {
			for _, r := range records {
				if found[r.Partition] == nil {
					found[r.Partition] = make(map[string][]int64)
				}
				id := string(r.Value)
				found[r.Partition][id] = append(found[r.Partition][id], r.Offset)
			}
			return nil
		})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func (p *past) checkInput(
	t *testing.T, part int32, committed int64, place offsets.Place, present map[string][]int64,
) {
	t.Helper()
	at := p.parts[part]
	var again int64
	missed := func(id string, what string, where int64) {
		t.Helper()
		there := present[id]
		if len(there) > 0 && there[len(there)-1] < place.Offset {
			t.Fatalf("partition %d, committed %d: the consumer goes on at %d, and misses the message "+
				"of %d, %s", part, committed, place.Offset, where, what)
		}
	}
	for _, r := range at.out {
		source := at.source[r]
		switch {
		case r.Offset >= committed:
			missed(string(r.Value), fmt.Sprint("which stands at ", r.Offset), source)
		case source >= place.Offset:
			again++
		}
	}
	for _, r := range at.in {
		if r.Offset >= at.handled && !at.aborted[r.Offset] {
			missed(string(r.Value), "which is forwarded later", r.Offset)
		}
	}
	if again > place.Again {
		t.Errorf("partition %d, committed %d: %d records come again from %d on, not %d at most", part,
			committed, again, place.Offset, place.Again)
	}
}

func TestAnOffsetBehindTheEndOfTheInputIsRefused(t *testing.T) {
	p := newPast(t, rand.New(rand.NewPCG(1, 3)))
	end := p.options.Input.Partitions[1].End
	_, err := offsets.Clean(t.Context(), p.options, map[int32]int64{1: end + 1})
	if err == nil {
		t.Error("no error")
	}
}
