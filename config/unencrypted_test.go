package config

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSecretsThatCrossTheNetworkAsTheyAre(t *testing.T) {
	away, here := []string{"b:9092"}, []string{"127.0.0.1:9092", "localhost", "[::1]:9092"}
	for name, c := range map[string]struct {
		change func(*Config)
		want   []string
	}{
		"none": {func(*Config) {}, nil},
		"Kafka's password": {func(c *Config) { c.Kafka.SASL = SASL{Mechanism: SASLPlain} },
			[]string{"kafka.sasl"}},
		"a token": {func(c *Config) { c.Kafka.SASL = SASL{Mechanism: SASLOAuthBearer} },
			[]string{"kafka.sasl"}},
		"SCRAM sends none": {func(c *Config) { c.Kafka.SASL = SASL{Mechanism: SASLScram512} }, nil},
		"encrypted": {func(c *Config) {
			c.Kafka.SASL, c.Kafka.TLS.Enabled = SASL{Mechanism: SASLPlain}, true
		}, nil},
		"on this machine": {func(c *Config) {
			c.Kafka.SASL, c.Kafka.Brokers = SASL{Mechanism: SASLPlain}, here
		}, nil},
		"of the other cluster": {func(c *Config) {
			c.Kafka.Output = OutputCluster{Brokers: away, SASL: SASL{Mechanism: SASLPlain}}
		}, []string{"kafka.output.sasl"}},
		"Cassandra's": {func(c *Config) {
			c.Store.Type, c.Store.Cassandra.Password, c.Store.Cassandra.Hosts = StoreCassandra, "x",
				away
		}, []string{"store.cassandra.password"}},
		"Redis's": {func(c *Config) {
			c.Store.Type, c.Store.Redis.Password, c.Store.Redis.Addresses = StoreRedis, "x", away
		}, []string{"store.redis.password"}},
		"of a store that is not used": {func(c *Config) {
			c.Store.Type, c.Store.Redis.Password, c.Store.Redis.Addresses = StoreEmbedded, "x", away
		}, nil},
	} {
		config := Default()
		config.Kafka.Brokers = away
		c.change(&config)
		if diff := cmp.Diff(c.want, config.Unencrypted()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
