package consumer

import (
	"context"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Handled reports whether a claim by the record at a place of the input was forwarded for sure: the
// fence settles it. The client needs no group.
func Handled(ctx context.Context, client *kgo.Client, fenceTopic, input string, topicID [16]byte, r *kgo.Record, claimed time.Time) (bool, error) {
	fences, err := readFences(ctx, client, fenceTopic, input, []int32{r.Partition}, fencePatience)
	if err != nil {
		return false, fmt.Errorf("fence of %s[%d]: %w", input, r.Partition, err)
	}
	return !claimed.After(fences[r.Partition].settled(topicID, r)), nil
}
