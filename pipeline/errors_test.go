package pipeline

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/kdedup/kdedup/consumer"
)

func TestHintNamesTheRemedyOfWhatKafkaAnswered(t *testing.T) {
	for _, c := range []struct {
		err  error
		want string
	}{
		{kerr.ProducerFenced, "its own instance"},
		{kerr.InvalidProducerEpoch, "its own instance"},
		{kerr.InvalidTxnState, "its own instance"},
		{kerr.FencedInstanceID, "its own instance"},
		{kerr.MessageTooLarge, "max.message.bytes"},
		{kerr.TopicAuthorizationFailed, "ACLs"},
		{kerr.ClusterAuthorizationFailed, "ACLs"},
		{kerr.SaslAuthenticationFailed, "kafka.sasl"},
		{kerr.UnknownTopicOrPartition, "kdedup setup"},
		{kerr.UnknownTopicID, "recreated"},
		{kerr.InvalidTopicException, "at_least_once"},
		{kerr.InvalidRequest, "at_least_once"},
		{consumer.ErrInputReplaced, "consumer group"},
		{kerr.InvalidSessionTimeout, "kdedup validate"},
		{kerr.InvalidTransactionTimeout, "kdedup validate"},
		{kerr.GroupMaxSizeReached, "kdedup validate"},
		{kerr.InconsistentGroupProtocol, "kdedup validate"},
	} {
		if got := hint(fmt.Errorf("end transaction: %w", c.err)); !strings.Contains(got, c.want) {
			t.Errorf("%v: the hint is %q, want one with %q", c.err, got, c.want)
		}
	}
	if got := hint(kerr.CoordinatorNotAvailable); got != "" {
		t.Errorf("an error that explains itself has the hint %q", got)
	}
}

func TestWhatManyLanesEndWithIsSaidOnce(t *testing.T) {
	p := &Pipeline{options: Options{Name: "orders"}}
	errs := []error{nil, errUnfinished, fmt.Errorf("read one:9001: %w", ErrStop), nil,
		errUnfinished, fmt.Errorf("read one:9002: %w", ErrStop)}
	for _, c := range []struct {
		kind func(error) string
		want []string
	}{
		{error.Error, []string{"orders 2 lanes: " + errUnfinished.Error(),
			"orders lane 2: read one:9001: the pipeline cannot go on",
			"orders lane 5: read one:9002: the pipeline cannot go on"}},
		{p.kind, []string{"orders 2 lanes: " + errUnfinished.Error(),
			"orders 2 lanes: read one:9001: the pipeline cannot go on"}},
	} {
		err := p.joined(errs, c.kind)
		if !errors.Is(err, ErrStop) {
			t.Errorf("it does not wrap %v: %v", ErrStop, err)
		}
		if diff := cmp.Diff(c.want, strings.Split(err.Error(), "\n")); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	}
	if err := p.joined(make([]error, 3), error.Error); err != nil {
		t.Error(err)
	}
}
