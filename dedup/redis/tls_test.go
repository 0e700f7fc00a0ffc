package redis_test

import (
	"crypto/tls"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/kdedup/kdedup/dedup/redis"
	"github.com/kdedup/kdedup/internal/testkit"
	"github.com/kdedup/kdedup/internal/testkit/servers"
)

// issue writes a server's certificate and returns what its clients need, whose certificate it asks
// for.
func issue(t *testing.T, directory string) *tls.Config {
	t.Helper()
	authority := testkit.NewAuthority(t)
	authority.Write(directory, testkit.Leaf{Name: "redis"})
	if err := os.WriteFile(filepath.Join(directory, "ca.pem"), authority.PEM(), 0o600); err != nil {
		t.Fatal(err)
	}
	client, err := tls.X509KeyPair(authority.Issue(testkit.Leaf{Name: "kdedup"}))
	if err != nil {
		t.Fatal(err)
	}
	return &tls.Config{RootCAs: authority.Pool(), Certificates: []tls.Certificate{client}}
}

func TestEachConnectionTakesTheCertificatesOfItsMoment(t *testing.T) {
	directory := t.TempDir()
	var current atomic.Pointer[tls.Config]
	current.Store(issue(t, directory))
	ports, err := servers.FreePorts("127.0.0.1", 1)
	if err != nil {
		t.Fatal(err)
	}
	port := strconv.Itoa(ports[0])
	server := startServer(t, map[string]string{
		"tls-port": port, "tls-auth-clients": "yes",
		"tls-cert-file":    filepath.Join(directory, "cert.pem"),
		"tls-key-file":     filepath.Join(directory, "key.pem"),
		"tls-ca-cert-file": filepath.Join(directory, "ca.pem"),
	})
	options := optionsFor(net.JoinHostPort("127.0.0.1", port))
	options.TLS = func() *tls.Config { return &tls.Config{RootCAs: current.Load().RootCAs} }
	if _, err := redis.Open(t.Context(), options, prometheus.NewRegistry()); err == nil {
		t.Error("opened without a certificate")
	}
	options.TLS = current.Load
	store := open(t, options)
	wantClaimed(t, store, claimsOf(10, 1))

	renewed := issue(t, directory)
	if err := server.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	// broken connections are found first
	testkit.Eventually(t, patience, "the server's certificate refused", func() bool {
		_, err := store.Claim(t.Context(), scope, claimsOf(10, 1))
		return err != nil && strings.Contains(err.Error(),
			"certificate signed by unknown authority")
	})
	current.Store(renewed)
	testkit.Eventually(t, patience, "claims with the renewed certificates", func() bool {
		_, err := store.Claim(t.Context(), scope, claimsOf(10, 1))
		return err == nil
	})
}
