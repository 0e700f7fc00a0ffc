package pipeline

import (
	"context"
	"errors"
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/kdedup/kdedup/consumer"
	"github.com/kdedup/kdedup/forwarder"
)

// ErrStop is wrapped by errors that no repeat can fix: the process ends with them.
var ErrStop = errors.New("the pipeline cannot go on")

// class says what an error of a turn means for the lane. Records that are themselves at fault
// do not get here: they were dead-lettered or dropped, see forwarder.Isolation.
type class uint8

const (
	proceed class = iota // the batch was given back in good order: poll again
	rejoin               // the session is of no more use: close it, wait, join again
	stop                 // end the process
)

// classify is the only place that decides over errors.
func classify(err error) class {
	switch {
	case err == nil:
		return proceed
	case errors.Is(err, ErrStop), errors.Is(err, consumer.ErrInputReplaced):
		return stop
	case errors.Is(err, kerr.UnknownTopicID):
		return rejoin // a client never adopts the new ID of a topic that was recreated
	case errors.Is(err, consumer.ErrAborted) &&
		(errors.Is(err, consumer.ErrRevoked) || errors.Is(err, consumer.ErrSlow) ||
			isUndeliverable(err)):
		return proceed
	default:
		return rejoin
	}
}

// isUndeliverable tells that a batch was given back for one of its records: it comes again without
// it, or with what is known of it by now.
func isUndeliverable(err error) bool {
	var stuck *forwarder.Stuck
	return errors.Is(err, forwarder.ErrUnfinished) || errors.As(err, &stuck)
}

// isRefusedByKind tells that the brokers do not do this with such a topic, or at all.
func isRefusedByKind(err error) bool {
	return errors.Is(err, kerr.InvalidTopicException) || errors.Is(err, kerr.InvalidRequest) ||
		errors.Is(err, kerr.UnsupportedVersion)
}

// isBeyondLimit tells that a start found what a broker does not admit any more.
func isBeyondLimit(err error) bool {
	return slices.ContainsFunc([]error{
		kerr.InvalidSessionTimeout, kerr.InvalidTransactionTimeout, kerr.GroupMaxSizeReached,
		kerr.InconsistentGroupProtocol, kerr.UnsupportedAssignor,
	}, func(refusal error) bool { return errors.Is(err, refusal) })
}

// hint adds the likely remedy to errors whose text does not show it.
func hint(err error) string {
	switch reason := reasonOf(err); {
	case errors.Is(err, consumer.ErrInputReplaced):
		return "the old offsets mean nothing now: reset the consumer group or name a new one, " +
			"then start again"
	case errors.Is(err, kerr.UnknownTopicID):
		return "an output topic was recreated; the next attempt forwards to the new one"
	case reason == reasonFenced:
		return "another process joined with the same instance name: give every process its own " +
			"instance; or the transaction outlasted " +
			"transaction_timeout: the next batches are smaller"
	case errors.Is(err, kerr.MessageTooLarge):
		return "the output topic's max.message.bytes was lowered; the next attempt reads it again"
	case errors.Is(err, kerr.SaslAuthenticationFailed):
		return "the brokers refuse the credentials under kafka.sasl, or kafka.output.sasl"
	case reason == reasonACL:
		return "the Kafka ACLs of this user do not allow it"
	case isBeyondLimit(err):
		return "the coordinator's broker admits no such value any more, or this group takes no " +
			"such member; kdedup validate -c FILE names the setting and the limit"
	case errors.Is(err, kerr.UnknownTopicOrPartition):
		return "a topic or partition is missing; kdedup setup -c FILE creates it"
	case isRefusedByKind(err):
		return "with exactly_once: a topic that takes no transactions, as a diskless one; " +
			"kdedup validate -c FILE names it, and delivery: at_least_once needs none"
	case errors.Is(err, context.DeadlineExceeded):
		return "shutdown_timeout passed"
	}
	return ""
}
