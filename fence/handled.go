package fence

import (
	"context"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Handled reports whether a claim by the record at a place of the input was forwarded for sure: the
// fence settles it. The clients need no group; see ReadApart.
func Handled(
	ctx context.Context, client, inputs *kgo.Client, topic, input string, topicID [16]byte,
	r *kgo.Record, claimed time.Time,
) (bool, error) {
	found, err := ReadApart(ctx, client, inputs, topic, input, []int32{r.Partition}, Patience)
	if err != nil {
		return false, fmt.Errorf("fence of %s[%d]: %w", input, r.Partition, err)
	}
	f := found.Fences[r.Partition]
	if f.Foreign(found.Input) {
		return false, nil
	}
	return !claimed.After(f.Settled(topicID, r.Offset, r.LeaderEpoch)), nil
}
