package servers

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/kdedup/kdedup/internal/testkit/skip"
)

// Need skips a test where it cannot start servers that it may stop, kill and pause, which a
// container engine does not give. With CI=true it fails instead.
func Need(t testing.TB) {
	t.Helper()
	_, err := FindJava(t.Context())
	if err == nil {
		_, err = FindMaven()
	}
	need(t, err)
}

// NeedRedis is Need for a Redis of one's own.
func NeedRedis(t testing.TB) {
	t.Helper()
	_, err := FindRedis()
	need(t, err)
}

// NeedPgbouncer is Need for a pgbouncer of one's own.
func NeedPgbouncer(t testing.TB) {
	t.Helper()
	_, err := FindPgbouncer()
	need(t, err)
}

// RedisEnv names a Redis or Valkey that tests may use, as "host:port".
const RedisEnv = "KDEDUP_TEST_REDIS"

// Redis returns the address of a Redis that others may use too: the one that the environment names,
// or one that ends with the test.
func Redis(t testing.TB) string {
	t.Helper()
	if addr := os.Getenv(RedisEnv); addr != "" && !testing.Short() {
		return addr
	}
	NeedRedis(t)
	s, err := StartRedis(t.Context(), RedisOptions{Dir: t.TempDir()})
	return ForTest(t, s, err).Addr()
}

// ForTest takes what a function returned that starts a server: the test ends if it has failed, and
// the server with the test.
func ForTest(t testing.TB, s *Server, err error) *Server {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// NeedPostgres is Need for StartPostgres.
func NeedPostgres(t testing.TB) {
	t.Helper()
	_, err := FindPostgres()
	need(t, err)
}

// need skips, or fails with CI=true, when something is missing.
func need(t testing.TB, err error) {
	t.Helper()
	if testing.Short() {
		t.Skip("real servers are not for -short")
	}
	if err != nil {
		skip.Missing(t, "no server that a test may stop: "+err.Error())
	}
}

// registryLimit bounds the first download of what a registry consists of.
const registryLimit = 5 * time.Minute

// Registry returns a schema registry that ends with the test.
func Registry(t testing.TB) *Server {
	t.Helper()
	if testing.Short() {
		t.Skip("real servers are not for -short")
	}
	ctx, cancel := context.WithTimeout(t.Context(), registryLimit)
	defer cancel()
	if err := FindRegistry(ctx); err != nil {
		skip.Missing(t, fmt.Sprintf("no schema registry can be started: %v; make packages installs "+
			"what it needs (Debian: python3-pip)", err))
	}
	s, err := StartRegistry(t.Context(), RegistryOptions{Dir: t.TempDir()})
	return ForTest(t, s, err)
}

// Glue returns a schema registry that answers as AWS Glue does and ends with the test.
func Glue(t testing.TB) *Server {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), registryLimit)
	defer cancel()
	python, err := FindClouds(ctx)
	if err != nil {
		skip.Missing(t, fmt.Sprintf("no moto can be started: %v; make packages installs "+
			"what it needs (Debian: python3-pip)", err))
	}
	s, err := StartGlue(t.Context(), python, GlueOptions{Dir: t.TempDir()})
	return ForTest(t, s, err)
}
