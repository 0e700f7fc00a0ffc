package consumer

import (
	"context"
	"errors"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/fence"
)

// shared is a client whose group takes partitions away while their fences are read.
type shared struct {
	deaf
	meanwhile func()
	committed Offsets // of the partitions that it has
	group     Offsets
	found     fence.Found
}

func (s *shared) Committed() Offsets { return s.committed }
func (s *shared) Fences(context.Context, []int32) (fence.Found, error) {
	s.meanwhile()
	return s.found, nil
}
func (s *shared) GroupOffsets(context.Context) (Offsets, error) {
	return s.group, nil
}

func TestAPartitionThatIsRevokedWhileItsFenceIsReadIsItsNextOwnersAlone(t *testing.T) {
	input := [16]byte{1}
	handled := func(to int64) fence.Fence {
		return fence.Fence{}.Advance(fence.Span{TopicID: input, Next: to})
	}
	at := func(offset int64) kgo.EpochOffset { return kgo.EpochOffset{Epoch: -1, Offset: offset} }
	cases := []struct {
		name      string
		meanwhile func(m *member, s *shared)
		fences    map[int32]int64 // that the session knows then
		unread    bool            // partition 5
	}{
		{"it stays", func(*member, *shared) {}, map[int32]int64{4: 3, 5: 2}, false},
		{"it goes, and its next owner commits", func(m *member, s *shared) {
			m.drop("partitions revoked", []int32{5})
			s.group = Offsets{4: at(3), 5: at(9)}
			delete(s.committed, 5)
		}, map[int32]int64{4: 3}, false},
		{"it goes, is handled, and comes back", func(m *member, s *shared) {
			m.drop("partitions revoked", []int32{5})
			groupEvents{m}.Assigned([]int32{5})
			s.group = Offsets{4: at(3), 5: at(9)}
			s.committed = s.group
		}, map[int32]int64{4: 3}, true},
		{"all go", func(m *member, s *shared) {
			m.drop("partitions revoked", []int32{4, 5})
			s.committed = nil
			s.group = Offsets{4: at(7), 5: at(9)}
		}, nil, false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			m := memberOf(t, 0)
			delete(m.partitions, 0)
			client := &shared{
				committed: Offsets{4: at(3), 5: at(2)}, group: Offsets{4: at(3), 5: at(2)},
				found: fence.Found{Input: input,
					Fences: map[int32]fence.Fence{4: handled(3), 5: handled(2)}},
			}
			client.meanwhile = func() { c.meanwhile(m, client) }
			m.client = client
			groupEvents{m}.Assigned([]int32{4, 5})
			if _, err := m.readFences(t.Context(), nil); err != nil {
				t.Fatal(err)
			}
			for p := range int32(10) {
				if got := m.fenceLocked(p).Next(); got != c.fences[p] {
					t.Errorf("the fence of partition %d is %d, not %d", p, got, c.fences[p])
				}
			}
			if got := m.partitions[5] != nil && !m.partitions[5].known(); got != c.unread {
				t.Errorf("partition 5 is to be read: %v", got)
			}
		})
	}
}

// Its owner between has handled more than the fence says that was read.
func TestOffsetsThatWereMovedAreNotSetBackForAPartitionThatCameBack(t *testing.T) {
	input := [16]byte{1}
	m := memberOf(t, 0)
	m.client = &shared{
		meanwhile: func() {},
		committed: Offsets{5: {Epoch: -1, Offset: 7}},
		found: fence.Found{Input: input, Fences: map[int32]fence.Fence{
			5: fence.Fence{}.Advance(fence.Span{TopicID: input, Next: 2})}},
	}
	m.opts.CheckScope = func(context.Context) error {
		m.drop("partitions revoked", []int32{5})
		groupEvents{m}.Assigned([]int32{5})
		return nil
	}
	groupEvents{m}.Assigned([]int32{5})
	if _, err := m.readFences(t.Context(), nil); !errors.Is(err, ErrRevoked) {
		t.Errorf("got %v", err)
	}
}
