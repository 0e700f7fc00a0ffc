package pipeline

import (
	"fmt"
	"strings"
	"testing"

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
		{consumer.ErrInputReplaced, "consumer group"},
	} {
		if got := hint(fmt.Errorf("end transaction: %w", c.err)); !strings.Contains(got, c.want) {
			t.Errorf("%v: the hint is %q, want one with %q", c.err, got, c.want)
		}
	}
	if got := hint(kerr.CoordinatorNotAvailable); got != "" {
		t.Errorf("an error that explains itself has the hint %q", got)
	}
}
