package consumer

import (
	"context"
	"errors"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
)

const (
	// endingTimeout is how long after a commit its markers are waited for. Usually they take a few milliseconds.
	endingTimeout = 50 * time.Millisecond
	// endingPause lies between two questions.
	endingPause = time.Millisecond
)

// ending watches the last transaction of a session end: the broker answers a commit before its markers are on all
// partitions. A broker that is asked to write for the next transaction before they are tries again 20 ms later
// (add.partitions.to.txn.retry.backoff.ms; before Kafka 4.0 the client does), which is longer than a small batch takes
// as a whole. So the coordinator is asked first. If it answers late, not at all, or not to this user (DESCRIBE on the
// transactional ID comes with WRITE), that delay is what remains.
type ending struct {
	admin           *kadm.Client
	transactionalID string
	timeout         time.Duration // after the commit
	decided         time.Time     // when the broker answered the commit
}

func newEnding(m *member) *ending {
	return &ending{admin: kadm.NewClient(m.client), transactionalID: m.opts.Member, timeout: endingTimeout}
}

// wait returns when the markers are written, or when nothing will be known about them.
func (e *ending) wait() {
	deadline := e.decided.Add(e.timeout)
	if time.Now().After(deadline) {
		return
	}
	ctx, cancel := context.WithDeadline(context.Background(), deadline)
	defer cancel()
	_ = repeat(ctx, endingPause, isPending, func() error { return e.ask(ctx) }) // whoever writes next meets it
}

func (e *ending) ask(ctx context.Context) error {
	described, err := e.admin.DescribeTransactions(ctx, e.transactionalID)
	if err != nil {
		return err
	}
	switch described[e.transactionalID].State {
	case "PrepareCommit", "PrepareAbort":
		return errPending
	}
	return nil
}

var errPending = errors.New("the markers of the last transaction are not written yet")

func isPending(err error) bool { return errors.Is(err, errPending) }
