package connect

import (
	"testing"
	"time"

	"github.com/kdedup/kdedup/config"
)

// The setting of a claim log has a place for the consumer group: the log tells the topics.
func TestTheStoreOfAClaimLogIsNamedByItsTopics(t *testing.T) {
	c := config.Config{Store: config.Store{Type: config.StoreKafka,
		Kafka: config.ClaimLog{Topic: "{group}.claims", Shards: 1}}}
	for _, group := range []string{"a", "b", "c"} {
		c.Topics = append(c.Topics, config.Topic{ScopeGroup: group, TTL: time.Hour})
	}
	want := "topics a.claims, a.claims.scopes, b.claims, b.claims.scopes and 2 more"
	if got := StoreInUse(c); got != want {
		t.Errorf("%q, want %q", got, want)
	}
	c.Store = config.Store{Type: config.StoreRedis, Redis: config.Redis{KeyPrefix: "clean"}}
	if got, want := StoreInUse(c), "store.redis.key_prefix clean"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
