package brokers

import (
	"context"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// leaveTimeout is how long a stop waits for brokers that do not answer.
const leaveTimeout = 5 * time.Second

// Leave has the client leave its group, and closes it, also while a rebalance waits for a poll. If
// the brokers do not answer in time, they take the member out themselves after its session timeout.
// A client that is only closed asks them again and again, while Kubernetes waits for the pod.
func Leave(client *kgo.Client) {
	client.AllowRebalance()
	ctx, cancel := context.WithTimeout(context.Background(), leaveTimeout)
	defer cancel()
	_ = client.LeaveGroupContext(ctx)
	client.Close()
}
