package pipeline_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kadm"

	fences "github.com/kdedup/kdedup/fence"
)

// A start: latest was decided, and the first batch after it did not commit: the group's offset has
// expired, or a broker has lost the markers of its transaction and kept its offset.
func TestALaneBeginsWhereItsScopeBegan(t *testing.T) {
	for name, committed := range map[string]int64{"no offset": -1, "the start": 1, "above it": 2,
		"below it": 0} {
		t.Run(name, func(t *testing.T) {
			event(t, 1, func(t *testing.T, s *site) {
				s.lanes = 1
				s.produce(message(0, "a", "A"), message(0, "b", "B"), message(0, "c", "C"))
				topics, err := kadm.NewClient(s.client).ListTopics(t.Context(), input)
				if err != nil {
					t.Fatal(err)
				}
				s.produce(fences.StartRecord(fence, input, 0,
					fences.StartAt(topics[input].ID, 1, -1, group)))
				if committed >= 0 {
					to := make(kadm.Offsets)
					to.Add(kadm.Offset{Topic: input, At: committed, LeaderEpoch: -1,
						Metadata: "kdedup:1"})
					if err := kadm.NewClient(s.client).CommitAllOffsets(t.Context(), group,
						to); err != nil {
						t.Fatal(err)
					}
				}
				if err := s.startAndFinish("one", 3); err != nil {
					t.Fatal(err)
				}
				want := []string{"0:B", "0:C"}
				if committed == 0 { // an operator wants it
					want = append([]string{"0:A"}, want...)
				}
				if diff := cmp.Diff(want, s.texts(output)); diff != "" {
					t.Error(diff)
				}
			})
		})
	}
}
