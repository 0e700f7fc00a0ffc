package redis

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	goredis "github.com/redis/go-redis/v9"
)

const oldestMajor = 7 // the first whose SET takes NX and GET together

// server is what a server says about itself.
type server struct {
	address, version, mode, policy string
	runID                          string // another one after each start
	appendOnly                     bool
	evicted                        int64 // keys, since that start
}

// ask reads INFO, which is allowed where CONFIG is not, as on managed services.
func ask(ctx context.Context, cn interface {
	Info(ctx context.Context, section ...string) *goredis.StringCmd
}) (server, error) {
	text, err := cn.Info(ctx).Result()
	if err != nil {
		return server{}, fmt.Errorf("ask the server for INFO: %w", err)
	}
	said := make(map[string]string)
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			said[name] = value
		}
	}
	evicted, err := strconv.ParseInt(cmp.Or(said["evicted_keys"], "0"), 10, 64)
	if err != nil {
		return server{}, fmt.Errorf("INFO of the server: evicted_keys: %w", err)
	}
	return server{
		evicted: evicted,
		// of Valkey the one that it is like
		version: said["redis_version"], runID: said["run_id"],
		mode:   cmp.Or(said["redis_mode"], said["server_mode"]), // as Redis and as Valkey calls it
		policy: said["maxmemory_policy"], appendOnly: said["aof_enabled"] == "1",
	}, nil
}

// check refuses a server that cannot keep the promise. It runs on every new connection, so a server
// that takes over after a failover is looked at too.
func (o Options) check(ctx context.Context, cn *goredis.Conn) error {
	s, err := ask(ctx, cn)
	if err != nil {
		return err
	}
	if s.mode == "sentinel" {
		return nil // it is asked for the master only
	}
	return s.problem(o.Mode)
}

func (s server) problem(mode string) error {
	major, _, _ := strings.Cut(s.version, ".")
	if n, err := strconv.Atoi(major); err != nil || n < oldestMajor {
		return fmt.Errorf("the server is Redis %q: claims need Redis 7.0 or later, or Valkey",
			s.version)
	}
	if s.mode == Cluster && mode != Cluster {
		return errors.New("the server is a node of a cluster: set mode to cluster")
	}
	if s.policy != "noeviction" {
		return fmt.Errorf("the server's maxmemory-policy is %q: short of memory it would delete "+
			"claims, and their messages would be "+
			"forwarded again; set it to noeviction, with CONFIG SET maxmemory-policy noeviction "+
			"and in redis.conf, or in the "+
			"parameters of a managed service", s.policy)
	}
	return nil
}

// servers asks every master. With an error those are told that have answered.
func (s *Store) servers(ctx context.Context) (all []server, err error) {
	err = s.eachMaster(ctx, func(ctx context.Context, master *goredis.Client) error {
		one, err := ask(ctx, master)
		if err != nil {
			return err
		}
		one.address = master.Options().Addr
		s.mu.Lock()
		defer s.mu.Unlock()
		all = append(all, one)
		return nil
	})
	return all, err
}
