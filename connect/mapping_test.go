package connect

import (
	"testing"

	"github.com/kdedup/kdedup/config"
)

// A value without a meaning would be taken for the zero value, which drops records.
func TestEveryValueThatAFileMayHaveHasAMeaning(t *testing.T) {
	settings := map[string]func(*config.Topic) *config.Action{
		"on_missing_id":    func(t *config.Topic) *config.Action { return &t.OnMissingID },
		"on_conflict":      func(t *config.Topic) *config.Action { return &t.OnConflict },
		"on_replay":        func(t *config.Topic) *config.Action { return &t.OnReplay },
		"on_undeliverable": func(t *config.Topic) *config.Action { return &t.OnUndeliverable },
	}
	actions := []config.Action{
		config.ActionDeadLetter, config.ActionForward, config.ActionDrop, config.ActionFail,
		config.ActionStop, config.ActionBlock, config.ActionReread, config.ActionAccept,
	}
	for name, setting := range settings {
		accepted := 0
		for _, action := range actions {
			topic := orders()
			*setting(&topic) = action
			if accepts(topic) {
				accepted++
				PolicyOf(topic)
			}
		}
		if accepted < 2 {
			t.Errorf("%s takes %d of the actions that this test knows", name, accepted)
		}
	}
	for _, mode := range []config.Mode{
		config.ModeEnforce, config.ModeAnnotate, config.ModeObserve,
	} {
		topic := orders()
		topic.Mode = mode
		PolicyOf(topic)
	}
}

func orders() config.Topic {
	t := config.DefaultTopic()
	t.Input, t.Output, t.ConsumerGroup = "orders", "orders.clean", "orders-dedup"
	t.DeadLetterTopic = "orders.dlq"
	t.MessageID = config.MessageID{From: config.FromHeader, Name: "message-id"}
	return t
}

func accepts(t config.Topic) bool {
	c := config.Default()
	c.Instance, c.Kafka.Brokers = "one", []string{"localhost:9092"}
	c.Topics = []config.Topic{t}
	return c.Derived().Validate() == nil
}
