package postgres_test

import (
	"crypto/tls"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/internal/testkit"
	"github.com/kdedup/kdedup/internal/testkit/servers"
)

// issue writes a server's certificate, for the server's user to read, and returns what its clients
// need.
func issue(t *testing.T, directory string) *tls.Config {
	t.Helper()
	authority := testkit.NewAuthority(t)
	cert, key := authority.Write(directory, testkit.Leaf{Name: "postgres"})
	if err := servers.GiveToPostgres(cert, key); err != nil {
		t.Fatal(err)
	}
	return &tls.Config{RootCAs: authority.Pool()}
}

func TestEachConnectionTakesTheCertificatesOfItsMoment(t *testing.T) {
	servers.NeedPostgres(t) // and its user
	directory := t.TempDir()
	var current atomic.Pointer[tls.Config]
	current.Store(issue(t, directory))
	server := startServer(t, servers.PostgresOptions{Dir: directory, Config: map[string]string{
		"ssl": "on", "ssl_cert_file": filepath.Join(directory, "cert.pem"),
		"ssl_key_file": filepath.Join(directory, "key.pem"),
	}})
	options := optionsFor(t, server.Addr())
	options.TLS = current.Load
	create(t, options)
	store := open(t, options)
	claim := func() error {
		_, err := store.Claim(t.Context(), scope,
			[]dedup.Claim{{ID: "a", Owner: dedup.Coordinates{Offset: 1}}})
		return err
	}
	if err := claim(); err != nil {
		t.Fatal(err)
	}
	const encrypted = "SELECT count(*) FILTER (WHERE ssl) || ' of ' || count(*) FROM pg_stat_ssl " +
		"JOIN pg_stat_activity USING (pid) WHERE backend_type = 'client backend' AND pid <> " +
		"pg_backend_pid()"
	if got := query[string](t, connect(t, server.Addr()), encrypted); !strings.HasPrefix(got,
		"1 of 1") {
		t.Errorf("%s connections are encrypted", got)
	}

	renewed := issue(t, directory)
	if err := server.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	// broken connections are found first
	testkit.Eventually(t, patience, "the server's certificate refused", func() bool {
		err := claim()
		return err != nil && strings.Contains(err.Error(),
			"certificate signed by unknown authority")
	})
	current.Store(renewed)
	testkit.Eventually(t, patience, "claims with the renewed certificates", func() bool {
		return claim() == nil
	})
}
