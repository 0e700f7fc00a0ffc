package kafka

import (
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/internal/testkit"
)

func TestTopicsThatMayBeMeant(t *testing.T) {
	names := []string{"orders", "orders.clean", "Payments", "x", "shop.orders.v2", "refunds"}
	for name, want := range map[string][]string{
		"order":    {"orders", "orders.clean", "shop.orders.v2"},
		"payment":  {"Payments"},
		"PAYMENTS": {"Payments"},
		"odrers":   {"orders"},
		"refnuds":  {"refunds"},
		"clicks":   nil,
		"":         {"x"},
	} {
		if got := Near(name, names); !slices.Equal(got, want) {
			t.Errorf("%q: got %q, want %q", name, got, want)
		}
	}
}

func TestHowLongATopicKeepsItsRecords(t *testing.T) {
	testkit.Kafkas(t, 1, func(t *testing.T, brokers []string) {
		client := testkit.KafkaClient(t, brokers, kgo.ClientID("keeping"))
		for policy, want := range map[string]Keeping{
			"delete":         {For: 3 * time.Hour},
			"compact":        {Ever: true},
			"compact,delete": {For: 3 * time.Hour},
		} {
			topic := testkit.Topic(t, brokers, "keeping", 1, map[string]string{
				"cleanup.policy": policy, "retention.ms": "10800000"})
			if got, err := KeepingOf(t.Context(), client, topic); err != nil || got != want {
				t.Errorf("%s: got %+v, want %+v: %v", policy, got, want, err)
			}
		}
		topic := testkit.Topic(t, brokers, "keeping", 1, map[string]string{"retention.ms": "-1"})
		if got, err := KeepingOf(t.Context(), client, topic); err != nil || !got.Ever {
			t.Errorf("without an end: got %+v: %v", got, err)
		}
		names, err := TopicNames(t.Context(), testkit.KafkaClient(t, brokers))
		if err != nil || !slices.Contains(names, topic) || !slices.IsSorted(names) {
			t.Errorf("%v: %v", names, err)
		}
	})
}
