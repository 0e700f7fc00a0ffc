package config

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestDifferencesNameTheSettingsOutsideOfTopics(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*Config)
		want   []string
	}{
		{"none", func(*Config) {}, nil},
		{"topics", func(c *Config) {
			c.Topics[0].TTL++
			c.Topics = append(c.Topics, DefaultTopic())
		}, nil},
		{"a list", func(c *Config) { c.Kafka.Brokers = append(c.Kafka.Brokers, "b:9092") },
			[]string{"kafka.brokers"}},
		{"a secret, in the order of the manual", func(c *Config) {
			c.Log.Level, c.Kafka.SASL.Password = "debug", "other"
		}, []string{"kafka.sasl.password", "log.level"}},
		{"a store that is not in use", func(c *Config) { c.Store.Cassandra.Keyspace = "other" },
			nil},
		{"another store", func(c *Config) {
			c.Store.Type = StoreCassandra
			c.Store.Cassandra.Keyspace = "other"
		}, []string{"store.type", "store.cassandra.keyspace"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			one, other := valid("orders"), valid("orders")
			c.change(&other)
			for _, got := range [][]string{one.Differences(other), other.Differences(one)} {
				if diff := cmp.Diff(c.want, got); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
			}
		})
	}
}
