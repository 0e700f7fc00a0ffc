package config

import (
	"regexp"
	"time"
)

var redisPrefix = regexp.MustCompile(`^[a-zA-Z0-9._:-]{1,100}$`)

func (r Redis) check(p *problems) {
	const path = "store.redis"
	if oneOf(p, path+".mode", r.Mode, RedisStandalone, RedisSentinel, RedisCluster) {
		r.checkMode(p, path)
	}
	p.addresses(path+".addresses", r.Addresses)
	r.checkUsers(p, path)
	r.TLS.check(p, path+".tls")
	if !redisPrefix.MatchString(r.KeyPrefix) {
		p.add(path+".key_prefix", "",
			"must be 1 to 100 of letters, digits, '.', '_', '-', ':', got %q", r.KeyPrefix)
	}
	within(p, path+".database", r.Database, 0, 1<<20)
	within(p, path+".timeout", r.Timeout, 100*time.Millisecond, longest)
	within(p, path+".connections", r.Connections, 1, 1000)
	within(p, path+".pipeline_claims", r.PipelineClaims, 1, 10_000)
	within(p, path+".wait_replicas", r.WaitReplicas, 0, 10)
	within(p, path+".wait_timeout", r.WaitTimeout, time.Millisecond, longest)
	if r.WaitTimeout >= r.Timeout {
		p.add(path+".wait_timeout", "", "must be less than timeout (%v), got %v", r.Timeout,
			r.WaitTimeout)
	}
}

// checkMode checks what only some modes have.
func (r Redis) checkMode(p *problems, path string) {
	switch {
	case r.Mode == RedisSentinel && r.MasterName == "":
		p.add(path+".master_name", "", "is required with mode sentinel")
	case r.Mode != RedisSentinel && r.MasterName != "":
		p.add(path+".master_name", "set mode to sentinel", "has no effect with mode %s", r.Mode)
	}
	if r.Mode == RedisStandalone && len(r.Addresses) > 1 {
		p.add(path+".addresses",
			"name the one that leads to the master, or set mode to sentinel or cluster",
			"must be one address with mode standalone, got %d", len(r.Addresses))
	}
	if r.Mode == RedisCluster && r.Database != 0 {
		p.add(path+".database", "", "must be 0 with mode cluster, got %d", r.Database)
	}
	if r.Mode == RedisCluster && r.WaitReplicas > 0 {
		p.add(path+".wait_replicas", "set it to 0, or use mode sentinel",
			"must be 0 with mode cluster, whose shards cannot be waited for in one pipeline, got %d", r.WaitReplicas)
	}
}

func (r Redis) checkUsers(p *problems, path string) {
	if r.Username != "" && r.Password == "" {
		p.add(path+".password", "", "is required with username")
	}
	if r.SentinelUsername != "" && r.SentinelPassword == "" {
		p.add(path+".sentinel_password", "", "is required with sentinel_username")
	}
	if r.Mode != RedisSentinel && (r.SentinelUsername != "" || r.SentinelPassword != "") {
		p.add(path+".sentinel_password", "set mode to sentinel", "has no effect with mode %s",
			r.Mode)
	}
}
