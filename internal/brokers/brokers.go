// Package brokers finds out what brokers do, or a proxy before them: many services speak Kafka's
// protocol, each with gaps of its own.
package brokers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// Versions are those of the requests that brokers answer.
type Versions struct {
	highest      map[kmsg.Key]int16
	transactions int16 // level of the feature transaction.version
}

// Ask asks any broker. A proxy answers for those behind it.
func Ask(ctx context.Context, client *kgo.Client) (Versions, error) {
	req := kmsg.NewPtrApiVersionsRequest()
	req.ClientSoftwareName, req.ClientSoftwareVersion = "kdedup", "1"
	answer, err := req.RequestWith(ctx, client)
	if err == nil {
		err = kerr.ErrorForCode(answer.ErrorCode)
	}
	if err != nil {
		return Versions{}, fmt.Errorf("ask for the broker's versions: %w", err)
	}
	v := Versions{highest: make(map[kmsg.Key]int16)}
	for _, key := range answer.ApiKeys {
		v.highest[kmsg.Key(key.ApiKey)] = key.MaxVersion
	}
	for _, feature := range answer.FinalizedFeatures {
		if feature.Name == "transaction.version" {
			v.transactions = feature.MaxVersionLevel
		}
	}
	return v, nil
}

// TakeImplicitly reports whether what is written in a transaction need not be told before
// (KIP-890).
func (v Versions) TakeImplicitly() bool { return v.transactions >= 2 }

// Answer reports whether the brokers answer a request in this version.
func (v Versions) Answer(key kmsg.Key, version int16) bool {
	is, ok := v.highest[key]
	return ok && is >= version
}

// Unanswered reports whether brokers say that they do not answer a request at all.
func Unanswered(ctx context.Context, client *kgo.Client, key kmsg.Key) bool {
	versions, err := Ask(ctx, client)
	return err == nil && !versions.Answer(key, 0)
}

// transactionKeys are the requests of a transaction. The offsets need the version of Kafka 2.5
// (KIP-447): before it, a member that the group had given up could commit them.
var transactionKeys = []struct {
	key     kmsg.Key
	version int16
}{
	{kmsg.InitProducerID, 0}, {kmsg.AddPartitionsToTxn, 0}, {kmsg.AddOffsetsToTxn, 0},
	{kmsg.TxnOffsetCommit, 3}, {kmsg.EndTxn, 0},
}

// LackTransactions says what the brokers lack for transactions; it is empty if they lack nothing.
func (v Versions) LackTransactions() string {
	var missing []string
	for _, needed := range transactionKeys {
		if _, ok := v.highest[needed.key]; !ok {
			missing = append(missing, needed.key.Name())
		}
	}
	if len(missing) > 0 {
		return "the brokers, or a proxy before them, do not answer " + strings.Join(missing, ", ")
	}
	for _, needed := range transactionKeys {
		if is := v.highest[needed.key]; is < needed.version {
			return fmt.Sprintf("the brokers let anyone commit the offsets of a transaction: they "+
				"answer %s up to version %d, and Kafka 2.5, which checks the member (KIP-447), up "+
				"to %d", needed.key.Name(), is, needed.version)
		}
	}
	return ""
}

// WithoutTransactions is what to do where there are none.
const WithoutTransactions = "set delivery: at_least_once, which needs none and may repeat the " +
	"batch in hand when a process dies (docs/recipes/brokers.md)"

// Idempotent reports whether the brokers have idempotent producers. Where they do, they give one of
// their IDs away for the answer.
func Idempotent(ctx context.Context, client *kgo.Client) (bool, error) {
	v, err := Ask(ctx, client)
	if err != nil {
		return false, err
	}
	if _, ok := v.highest[kmsg.InitProducerID]; !ok {
		return false, nil
	}
	answer, err := kmsg.NewPtrInitProducerIDRequest().RequestWith(ctx, client)
	if err != nil {
		return false, fmt.Errorf("ask for a producer ID: %w", err)
	}
	// What else is wrong, the producer finds as well.
	return !Unsupported(kerr.ErrorForCode(answer.ErrorCode)), nil
}

// Unsupported reports whether a broker never does what it was asked for, whoever asks.
func Unsupported(err error) bool {
	return slices.ContainsFunc([]error{
		kerr.UnsupportedVersion, kerr.InvalidRequest, kerr.UnsupportedForMessageFormat,
		kerr.InvalidTopicException, kerr.PolicyViolation,
	}, func(refusal error) bool { return errors.Is(err, refusal) })
}
