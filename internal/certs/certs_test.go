package certs_test

import (
	"bytes"
	"crypto/tls"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/kdedup/kdedup/internal/certs"
	"github.com/kdedup/kdedup/internal/testkit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func save(t *testing.T, path string, content []byte) string {
	t.Helper()
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// client follows files of an authority's client and writes its log into the buffer.
func client(
	t *testing.T, a *testkit.Authority, log io.Writer,
) (*certs.Follower, certs.ClientFiles) {
	t.Helper()
	dir := t.TempDir()
	files := certs.ClientFiles{CAFile: save(t, filepath.Join(dir, "ca.pem"), a.PEM())}
	files.CertFile, files.KeyFile = a.Write(dir, testkit.Leaf{Serial: 1})
	f, err := certs.Client("kafka.tls", files, slog.New(slog.NewTextHandler(log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	return f, files
}

// meet makes one connection between both. It returns the error of the client or, if that has none,
// of the server, which in TLS 1.3 judges the client's certificate last.
func meet(t *testing.T, server, client *tls.Config) error {
	t.Helper()
	listener, err := tls.Listen("tcp", "127.0.0.1:0", server)
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	judged := make(chan error, 1)
	go func() {
		conn, err := listener.Accept()
		if err == nil {
			err = conn.(*tls.Conn).Handshake()
			conn.Close()
		}
		judged <- err
	}()
	dialer := tls.Dialer{NetDialer: &net.Dialer{Timeout: 30 * time.Second}, Config: client}
	conn, err := dialer.DialContext(t.Context(), "tcp", listener.Addr().String())
	if err == nil {
		defer conn.Close()
	}
	if verdict := <-judged; err == nil {
		err = verdict
	}
	return err
}

// serving is a server that knows the clients of an authority and no others.
func serving(t *testing.T, a *testkit.Authority) *tls.Config {
	t.Helper()
	pair, err := tls.X509KeyPair(a.Issue(testkit.Leaf{}))
	if err != nil {
		t.Fatal(err)
	}
	return &tls.Config{Certificates: []tls.Certificate{pair}, ClientCAs: a.Pool(),
		ClientAuth: tls.RequireAndVerifyClientCert}
}

func TestAClientTakesRenewedFilesForItsNextConnection(t *testing.T) {
	old, renewed := testkit.NewAuthority(t), testkit.NewAuthority(t)
	f, files := client(t, old, io.Discard)
	if err := meet(t, serving(t, old), f.Current()); err != nil {
		t.Fatalf("before: %v", err)
	}
	if err := meet(t, serving(t, renewed), f.Current()); err == nil {
		t.Fatal("a server of another authority was believed")
	}
	save(t, files.CAFile, renewed.PEM())
	renewed.Write(filepath.Dir(files.CertFile), testkit.Leaf{Serial: 2})
	testkit.Eventually(t, 30*time.Second, "a connection with the renewed files", func() bool {
		return meet(t, serving(t, renewed), f.Current()) == nil
	})
	if err := meet(t, serving(t, old), f.Current()); err == nil {
		t.Error("the old authority is still believed")
	}
}

// The authorities are renewed first, our own certificate a little too late.
func TestACertificateThatHasExpiredDoesNotHoldUpNewAuthorities(t *testing.T) {
	old, renewed := testkit.NewAuthority(t), testkit.NewAuthority(t)
	f, files := client(t, old, io.Discard)
	old.Write(filepath.Dir(files.CertFile), testkit.Leaf{Ends: time.Now().Add(-time.Hour)})
	save(t, files.CAFile, renewed.PEM())
	open := serving(t, renewed)
	open.ClientAuth = tls.NoClientCert
	testkit.Eventually(t, 30*time.Second, "belief in the new authority", func() bool {
		return meet(t, open, f.Current()) == nil
	})
}

func TestUnusableFilesLeaveTheOldOnesInUseAndSaySoOnce(t *testing.T) {
	a := testkit.NewAuthority(t)
	for name, c := range map[string]struct {
		spoil func(files certs.ClientFiles)
		says  string
	}{
		"a certificate without its new key": {func(files certs.ClientFiles) {
			cert, _ := a.Issue(testkit.Leaf{})
			save(t, files.CertFile, cert)
		}, "kafka.tls.cert_file and key_file: tls: private key does not match public key"},
		"an authority that is half written": {func(files certs.ClientFiles) {
			save(t, files.CAFile, a.PEM()[:40])
		}, "kafka.tls.ca_file: holds no certificate in PEM form"},
		"no key": {func(files certs.ClientFiles) {
			if err := os.Remove(files.KeyFile); err != nil {
				t.Fatal(err)
			}
		}, "kafka.tls.key_file: no such file or directory"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var log bytes.Buffer
			f, files := client(t, a, &log)
			c.spoil(files)
			testkit.Eventually(t, 30*time.Second, "a warning", func() bool {
				if f.Current() == nil || meet(t, serving(t, a), f.Current()) != nil {
					t.Fatal("the old files are out of use")
				}
				return strings.Contains(log.String(), c.says)
			})
			begin := time.Now() // and it looks again
			testkit.Eventually(t, 30*time.Second, "two more looks", func() bool {
				f.Current()
				return time.Since(begin) > 2*time.Second
			})
			if n := strings.Count(log.String(), "the new certificates are unusable"); n != 1 {
				t.Errorf("%d warnings:\n%s", n, log.String())
			}
			if strings.Contains(log.String(), filepath.Dir(files.KeyFile)) {
				t.Errorf("the log shows where the key is:\n%s", log.String())
			}
		})
	}
}

func TestAStartNeedsUsableFiles(t *testing.T) {
	a := testkit.NewAuthority(t)
	dir := t.TempDir()
	text := save(t, filepath.Join(dir, "text"), []byte("no certificate"))
	cert, key := a.Write(dir, testkit.Leaf{Ends: time.Now().Add(-time.Minute)})
	for want, files := range map[string]certs.ClientFiles{
		"kafka.tls.ca_file: holds no certificate in PEM form":   {CAFile: text},
		"kafka.tls.ca_file: no such file or directory":          {CAFile: text + ".none"},
		"kafka.tls.cert_file and key_file: tls: failed to find": {CertFile: text, KeyFile: text},
		"kafka.tls.cert_file: the certificate expired at ":      {CertFile: cert, KeyFile: key},
	} {
		if _, err := certs.Client("kafka.tls", files, slog.New(slog.DiscardHandler)); err == nil ||
			!strings.HasPrefix(err.Error(), want) {
			t.Errorf("got %v, want %s…", err, want)
		}
	}
}

// The server's own certificate may expire while the pipelines run: the probes of an orchestrator do
// not look at it, and nobody wants them to fail for it.
func TestAServerStartsWithACertificateThatHasExpired(t *testing.T) {
	a := testkit.NewAuthority(t)
	var files certs.ServerFiles
	files.CertFile, files.KeyFile = a.Write(t.TempDir(),
		testkit.Leaf{Ends: time.Now().Add(-time.Hour)})
	if _, err := certs.Server("server.tls", files, slog.New(slog.DiscardHandler)); err != nil {
		t.Error(err)
	}
}
