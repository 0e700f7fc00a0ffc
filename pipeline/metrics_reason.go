package pipeline

import (
	"context"
	"errors"
	"net"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/kdedup/kdedup/consumer"
)

// reason is why a lane failed, as a label: few values, never the text of an error.
type reason uint8

const (
	reasonOther      reason = iota
	reasonConnection        // no broker could be reached, or a request had no answer
	// the producer or the static member was replaced, or the transaction timed out
	reasonFenced
	reasonACL         // the brokers do not allow it
	reasonTopic       // a topic or partition is missing, or was recreated
	reasonTooLarge    // the output's limit was lowered
	reasonCoordinator // the group or transaction coordinator moved or is not available
	reasonStopped     // shutdown_timeout passed, or the pipeline cannot go on
)

var reasonNames = [...]string{"other", "connection", "fenced", "unauthorized", "topic", "too_large",
	"coordinator", "stopped"}

// reasonErrors is searched in order. Errors of a stop come first: they may wrap what the lane
// waited for.
var reasonErrors = []struct {
	reason reason
	errs   []error
}{
	{reasonStopped, []error{ErrStop, consumer.ErrInputReplaced, context.Canceled}},
	// InvalidTxnState is what the replaced producer is told that ends its transaction after the new
	// one aborted it: the coordinator takes the request for the repeat of an earlier end (KIP-890).
	{reasonFenced, []error{
		kerr.ProducerFenced, kerr.InvalidProducerEpoch, kerr.FencedInstanceID, kerr.InvalidTxnState,
		kerr.TransactionAbortable,
	}},
	{reasonACL, []error{
		kerr.TopicAuthorizationFailed, kerr.GroupAuthorizationFailed,
		kerr.TransactionalIDAuthorizationFailed,
		kerr.ClusterAuthorizationFailed, kerr.SaslAuthenticationFailed,
	}},
	{reasonTopic, []error{kerr.UnknownTopicOrPartition, kerr.UnknownTopicID}},
	{reasonTooLarge, []error{kerr.MessageTooLarge, kerr.RecordListTooLarge}},
	{reasonCoordinator, []error{
		kerr.CoordinatorNotAvailable, kerr.NotCoordinator, kerr.CoordinatorLoadInProgress,
		kerr.ConcurrentTransactions,
		kerr.UnstableOffsetCommit, kerr.RebalanceInProgress, kerr.IllegalGeneration,
		kerr.UnknownMemberID, kerr.StaleMemberEpoch,
	}},
	{reasonConnection, []error{context.DeadlineExceeded, kerr.RequestTimedOut,
		kerr.LeaderNotAvailable, kerr.NotLeaderForPartition, net.ErrClosed}},
}

func reasonOf(err error) reason {
	for _, r := range reasonErrors {
		for _, candidate := range r.errs {
			if errors.Is(err, candidate) {
				return r.reason
			}
		}
	}
	if network := (net.Error)(nil); errors.As(err, &network) {
		return reasonConnection
	}
	return reasonOther
}
