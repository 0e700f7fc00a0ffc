package config

import (
	"testing"
	"time"
)

func TestRedisRules(t *testing.T) {
	redis := func(set func(*Redis)) func(*Config) {
		return func(c *Config) {
			c.Store.Type = StoreRedis
			c.Store.Redis.Addresses = []string{"localhost:6379"}
			set(&c.Store.Redis)
		}
	}
	testRules(t, []string{"orders"}, []rule{
		{"redis", redis(func(*Redis) {}), ""},
		{"no addresses", redis(func(r *Redis) { r.Addresses = nil }),
			"store.redis.addresses: is required, at least one host:port"},
		{"address", redis(func(r *Redis) { r.Addresses = []string{"redis://a"} }),
			`store.redis.addresses[0]: must be host:port or a host, got "redis://a"`},
		{"mode", redis(func(r *Redis) { r.Mode = "clustr" }),
			`store.redis.mode: must be standalone, sentinel or cluster, got "clustr"; did you mean cluster?`},
		{"several addresses", redis(func(r *Redis) { r.Addresses = []string{"a", "b"} }),
			"store.redis.addresses: must be one address with mode standalone, got 2; name the " +
				"one that leads to the master, or set mode to sentinel or cluster"},
		{"several nodes", redis(func(r *Redis) {
			r.Mode, r.Addresses = RedisCluster, []string{"a", "b"}
		}), ""},
		{"sentinel", redis(func(r *Redis) {
			r.Mode, r.MasterName, r.SentinelUsername, r.SentinelPassword = RedisSentinel, "m", "u",
				"p"
		}), ""},
		{"no master name", redis(func(r *Redis) { r.Mode = RedisSentinel }),
			"store.redis.master_name: is required with mode sentinel"},
		{"master name", redis(func(r *Redis) { r.MasterName = "m" }),
			"store.redis.master_name: has no effect with mode standalone; set mode to sentinel"},
		{"sentinel's password", redis(func(r *Redis) { r.SentinelPassword = "p" }),
			"store.redis.sentinel_password: has no effect with mode standalone; set mode to " +
				"sentinel"},
		{"sentinel's user without password", redis(func(r *Redis) {
			r.Mode, r.MasterName, r.SentinelUsername = RedisSentinel, "m", "u"
		}),
			"store.redis.sentinel_password: is required with sentinel_username"},
		{"user without password", redis(func(r *Redis) { r.Username = "u" }),
			"store.redis.password: is required with username"},
		{"password of the default user", redis(func(r *Redis) { r.Password = "p" }), ""},
		{"database", redis(func(r *Redis) { r.Database = -1 }),
			"store.redis.database: must be at least 0, got -1"},
		{"database of a cluster", redis(func(r *Redis) { r.Mode, r.Database = RedisCluster, 1 }),
			"store.redis.database: must be 0 with mode cluster, got 1"},
		{"key prefix", redis(func(r *Redis) { r.KeyPrefix = "{a}" }),
			`store.redis.key_prefix: must be 1 to 100 of letters, digits, '.', '_', '-', ':', got "{a}"`},
		{"timeout", redis(func(r *Redis) {
			r.Timeout, r.WaitTimeout = 50*time.Millisecond, time.Millisecond
		}),
			"store.redis.timeout: must be at least 100ms, got 50ms"},
		{"connections", redis(func(r *Redis) { r.Connections = 0 }),
			"store.redis.connections: must be at least 1, got 0"},
		{"pipeline", redis(func(r *Redis) { r.PipelineClaims = 10_001 }),
			"store.redis.pipeline_claims: must be at most 10000, got 10001"},
		{"replicas", redis(func(r *Redis) { r.WaitReplicas = 11 }),
			"store.redis.wait_replicas: must be at most 10, got 11"},
		{"replicas of a cluster", redis(func(r *Redis) {
			r.Mode, r.WaitReplicas = RedisCluster, 1
		}),
			"store.redis.wait_replicas: must be 0 with mode cluster, whose shards cannot be " +
				"waited for in one pipeline, got 1; set it to 0, or use mode sentinel"},
		{"wait", redis(func(r *Redis) { r.WaitTimeout = 0 }),
			"store.redis.wait_timeout: must be at least 1ms, got 0s"},
		{"longer wait than the timeout", redis(func(r *Redis) { r.WaitTimeout = 5 * time.Second }),
			"store.redis.wait_timeout: must be less than timeout (5s), got 5s"},
		{"tls", redis(func(r *Redis) { r.TLS.ServerName = "a" }),
			"store.redis.tls.server_name: has no effect while store.redis.tls.enabled is false; " +
				"set enabled to true"},
	})
}
