package config

import (
	"testing"
	"time"
)

func TestConsumerGroupsDiffer(t *testing.T) {
	testRules(t, []string{"orders", "payments"}, []rule{
		{"two entries with one group", func(c *Config) {
			c.Topics[1].ConsumerGroup, c.Topics[1].FenceTopic = "orders-dedup", "other.fence"
		}, `topics[1].consumer_group: must differ from that of topics[0], both are "orders-dedup"`},
	})
}

func TestAnInputBelongsToOneEntry(t *testing.T) {
	testRules(t, []string{"orders", "payments"}, []rule{
		{"two groups on one input", func(c *Config) { c.Topics[1].Input = "orders" },
			`topics[1].input: must differ from that of topics[0], both are "orders"; ` +
				"metrics tell pipelines apart by their input: run one of the two in a process of " +
				"its own"},
		{"and with one scope", func(c *Config) {
			for i := range c.Topics {
				c.Topics[i].Input, c.Topics[i].Scope, c.Topics[i].ScopeGroup = "orders", "", "shop"
			}
		}, `topics[1].input: must differ from that of topics[0], both are "orders"; ` +
			"with one scope both would forward every record: remove one, or give it a " +
			"scope_group of its own and run it in a process of its own"},
	})
}

func TestFenceTopicBelongsToOneEntry(t *testing.T) {
	testRules(t, []string{"orders", "payments"}, []rule{
		{"two entries with one fence", func(c *Config) {
			c.Topics[1].FenceTopic = "orders-dedup.fence"
		},
			`topics[1].fence_topic: must differ from the fence topic of topics[0], both are "orders-dedup.fence"`},
		{"input is another's fence", func(c *Config) { c.Topics[1].Input = "orders-dedup.fence" },
			`topics[1].input: must differ from the fence topic of topics[0], both are "orders-dedup.fence"`},
		{"output is another's fence", func(c *Config) {
			c.Topics[0].Output = "payments-dedup.fence"
		},
			`topics[0].output: must differ from the fence topic of topics[1], both are "payments-dedup.fence"`},
		{"duplicates_topic is another's fence", func(c *Config) {
			c.Topics[1].DuplicatesTopic = "orders-dedup.fence"
		},
			`topics[1].duplicates_topic: must differ from the fence topic of topics[0], both are "orders-dedup.fence"`},
		{"dead_letter_topic is another's fence", func(c *Config) {
			c.Topics[1].DeadLetterTopic = "orders-dedup.fence"
		},
			`topics[1].dead_letter_topic: must differ from the fence topic of topics[0], both are "orders-dedup.fence"`},
	})
}

func TestEntriesThatShareClaimsAgree(t *testing.T) {
	share := func(differ func(*Topic)) func(*Config) {
		return func(c *Config) {
			for i := range c.Topics {
				c.Topics[i].Scope, c.Topics[i].ScopeGroup = "shared", "shop"
			}
			differ(&c.Topics[1])
		}
	}
	want := func(key string) string {
		return "topics[1]." + key +
			`: must equal that of topics[0]: both have the scope "shared" in the scope group "shop"; make them equal, or give one another scope`
	}
	testRules(t, []string{"orders", "payments"}, []rule{
		{"equal", share(func(*Topic) {}), ""},
		{"message_id", share(func(t *Topic) { t.MessageID.Name = "id" }), want("message_id")},
		{"fingerprint", share(func(t *Topic) {
			t.Fingerprint = Fingerprint{Of: FingerprintNone}
		}), want("fingerprint")},
		{"ttl", share(func(t *Topic) { t.TTL = time.Hour }), want("ttl")},
		{"ttl_from", share(func(t *Topic) { t.TTLFrom = TTLFromLast }), want("ttl_from")},
		{"buckets", share(func(t *Topic) { t.Buckets = 64 }), want("buckets")},
		{"the scope alone is not shared", share(func(t *Topic) {
			t.Buckets, t.ScopeGroup = 64, ""
		}), ""},
		{"the scope group alone is not shared", share(func(t *Topic) {
			t.Buckets, t.Scope = 64, ""
		}), ""},
	})
}

func TestNoEntryFeedsItself(t *testing.T) {
	testRules(t, []string{"a", "b", "c"}, []rule{
		{"a chain", func(c *Config) { c.Topics[0].Output, c.Topics[1].Output = "b", "c" }, ""},
		{"two entries with one output", func(c *Config) { c.Topics[1].Output = "a.clean" }, ""},
		{"a circle of two", func(c *Config) { c.Topics[0].Output, c.Topics[1].Output = "b", "a" },
			"topics[0].output: must not lead back to its own input: a -> b -> a"},
		{"a circle of three", func(c *Config) {
			c.Topics[0].Output, c.Topics[1].Output, c.Topics[2].Output = "b", "c", "a"
		}, "topics[0].output: must not lead back to its own input: a -> b -> c -> a"},
		{"a circle behind a chain", func(c *Config) {
			c.Topics[0].Output, c.Topics[1].Output, c.Topics[2].Output = "b", "c", "b"
		}, "topics[1].output: must not lead back to its own input: b -> c -> b"},
		{"a circle through dead letters", func(c *Config) {
			c.Topics[0].DeadLetterTopic, c.Topics[1].Output = "b", "a"
		}, "topics[0].dead_letter_topic: must not lead back to its own input: a -> b -> a"},
		{"a circle through duplicates", func(c *Config) {
			c.Topics[0].DuplicatesTopic, c.Topics[1].Output = "b", "a"
		}, "topics[0].duplicates_topic: must not lead back to its own input: a -> b -> a"},
	})
}
