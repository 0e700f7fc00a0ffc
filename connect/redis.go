package connect

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/kdedup/kdedup/config"
	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/dedup/redis"
)

func openRedis(
	ctx context.Context, c config.Redis, reg prometheus.Registerer, log *slog.Logger,
) (dedup.Store, error) {
	options, err := redisOptions(c, log)
	if err != nil {
		return nil, err
	}
	store, err := redis.Open(ctx, options, reg)
	if err != nil {
		return nil, fmt.Errorf("store.redis: %w", err)
	}
	return store, nil
}

func setupRedis(ctx context.Context, c config.Redis, log *slog.Logger, say func(string)) error {
	options, err := redisOptions(c, log)
	if err != nil {
		return err
	}
	if err := redis.Setup(ctx, options, say); err != nil {
		return fmt.Errorf("store.redis: %w", err)
	}
	return nil
}

func redisOptions(c config.Redis, log *slog.Logger) (redis.Options, error) {
	encrypted, err := Encryption("store.redis.tls", c.TLS, log)
	if err != nil {
		return redis.Options{}, err
	}
	return redis.Options{
		Mode: c.Mode, Addresses: c.Addresses, MasterName: c.MasterName, Database: c.Database,
		Username: c.Username, Password: c.Password.Reveal(),
		SentinelUsername: c.SentinelUsername, SentinelPassword: c.SentinelPassword.Reveal(),
		TLS:       encrypted,
		KeyPrefix: c.KeyPrefix, Timeout: c.Timeout, Connections: c.Connections,
		PipelineClaims: c.PipelineClaims,
		WaitReplicas:   c.WaitReplicas, WaitTimeout: c.WaitTimeout, Logger: log,
	}, nil
}
