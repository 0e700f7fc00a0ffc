package chaos_test

import (
	"context"
	"fmt"
	"time"

	"github.com/kdedup/kdedup/internal/pause"
)

// widest is how many partitions the topics get at most.
const widest = 2 * partitions

// grow gives the input and the topics that kdedup writes one more partition. The operator widens
// them one after the other, f.For apart, and producers use the new partition at once. The fence
// topic is kdedup's own to widen.
func (s *storm) grow(ctx, healing context.Context, f fault) error {
	to := s.traffic.width + 1
	if to > widest {
		return errGrown
	}
	outputs := []string{s.output(), s.duplicates(), s.deadLetters()}
	order := append([]string{s.input}, outputs...)
	if f.Kind == growOutputs {
		order = append(outputs, s.input)
	}
	for i, topic := range order {
		if i > 0 {
			pause.For(ctx, f.For/time.Duration(len(order)-1))
		}
		if err := s.widen(healing, topic, to); err != nil {
			return fmt.Errorf("widen %s: %w", topic, err)
		}
		if topic == s.input {
			s.traffic.widen(healing, to)
		}
	}
	return nil
}

// widen tries again: the broker may be away. What was not answered may have been done.
func (s *storm) widen(ctx context.Context, topic string, to int) error {
	admin := s.adminOf(topic)
	for {
		found, err := admin.ListTopics(ctx, topic)
		if err == nil && len(found[topic].Partitions) >= to {
			return nil
		}
		if err == nil {
			_, err = admin.UpdatePartitions(ctx, to, topic)
		}
		if !pause.For(ctx, askEvery) {
			return err
		}
	}
}
