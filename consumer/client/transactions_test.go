package client

import (
	"context"
	"errors"
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kversion"

	"github.com/kdedup/kdedup/internal/testkit"
)

func TestOldBrokersAreToldWhatBelongsToATransaction(t *testing.T) {
	for name, row := range map[string]struct {
		opts     []kfake.Opt
		explicit bool
	}{
		"3.8, before KIP-890": {[]kfake.Opt{kfake.MaxVersions(kversion.V3_8_0())}, true},
		"today's":             {nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			_, brokers := testkit.FakeKafka(t, row.opts...)
			got, err := explicitTransactions(context.Background(), &Options{
				Connection: func() []kgo.Opt { return []kgo.Opt{kgo.SeedBrokers(brokers...)} }})
			if err != nil || got != row.explicit {
				t.Errorf("got %t, %v", got, err)
			}
		})
	}
}

func TestBrokersThatTakeOffsetsFromAnyoneAreRefused(t *testing.T) {
	_, brokers := testkit.FakeKafka(t, kfake.MaxVersions(kversion.V2_4_0()))
	opts := Options{Connection: func() []kgo.Opt { return []kgo.Opt{kgo.SeedBrokers(brokers...)} }}
	opts.ConsumerGroup = "group"
	if _, err := JoinTransactional(t.Context(), opts); !errors.Is(err, errNoTransactions) {
		t.Error(err)
	}
}
