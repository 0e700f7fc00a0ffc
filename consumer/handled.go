package consumer

import (
	"context"
	"fmt"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Handled reports whether the record at a place of the input lies below the fence: a batch with it was
// committed. The client needs no group.
func Handled(ctx context.Context, client *kgo.Client, fenceTopic, input string, topicID [16]byte, r *kgo.Record) (bool, error) {
	fences, err := readFences(ctx, client, fenceTopic, input, []int32{r.Partition})
	if err != nil {
		return false, fmt.Errorf("fence of %s[%d]: %w", input, r.Partition, err)
	}
	return fences[r.Partition].covers(topicID, r), nil
}
