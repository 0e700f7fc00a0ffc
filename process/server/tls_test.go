package server_test

import (
	"crypto/tls"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/kdedup/kdedup/internal/certs"
	"github.com/kdedup/kdedup/internal/testkit"
	"github.com/kdedup/kdedup/process/server"
)

func save(t *testing.T, path string, content []byte) {
	t.Helper()
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
}

// browse asks over a new connection and returns the serial number of the server's certificate.
func browse(
	a *testkit.Authority, url string, client *tls.Certificate,
) (status int, serial int64, err error) {
	config := &tls.Config{RootCAs: a.Pool()}
	if client != nil {
		config.Certificates = []tls.Certificate{*client}
	}
	answer, err := (&http.Client{Transport: &http.Transport{TLSClientConfig: config,
		DisableKeepAlives: true}}).Get(url)
	if err != nil {
		return 0, 0, err
	}
	defer answer.Body.Close()
	_, err = io.Copy(io.Discard, answer.Body)
	return answer.StatusCode, answer.TLS.PeerCertificates[0].SerialNumber.Int64(), err
}

func withTLS(t *testing.T, a *testkit.Authority, clientCA bool) (server.Options, *testkit.Printed) {
	t.Helper()
	log := &testkit.Printed{}
	o := options()
	dir := t.TempDir()
	o.Logger = slog.New(slog.NewTextHandler(log, nil))
	o.TLS = certs.ServerFiles{CertFile: filepath.Join(dir, "cert.pem"),
		KeyFile: filepath.Join(dir, "the-key.pem")}
	cert, key := a.Issue(testkit.Leaf{Serial: 1})
	save(t, o.TLS.CertFile, cert)
	save(t, o.TLS.KeyFile, key)
	if clientCA {
		o.TLS.ClientCAFile = filepath.Join(dir, "ca.PEM()")
		save(t, o.TLS.ClientCAFile, a.PEM())
	}
	return o, log
}

func TestNewCertificatesNeedNoRestart(t *testing.T) {
	a := testkit.NewAuthority(t)
	o, log := withTLS(t, a, false)
	url := start(t, o)
	if status, serial, err := browse(a, url, nil); err != nil || status != 200 || serial != 1 {
		t.Fatalf("got %d with certificate %d, %v", status, serial, err)
	}
	cert, key := a.Issue(testkit.Leaf{Serial: 2})
	save(t, o.TLS.CertFile, cert) // and not the key yet
	testkit.Eventually(t, time.Minute, "a warning about half a pair", func() bool {
		_, serial, err := browse(a, url, nil)
		if err != nil || serial != 1 {
			t.Fatalf("with half a pair: certificate %d, %v", serial, err)
		}
		return strings.Contains(log.String(), "the old ones stay in use")
	})
	save(t, o.TLS.KeyFile, key)
	testkit.Eventually(t, time.Minute, "the new certificate", func() bool {
		_, serial, err := browse(a, url, nil)
		return err == nil && serial == 2
	})
	if err := os.Remove(o.TLS.KeyFile); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, time.Minute, "a warning about the missing key", func() bool {
		_, serial, err := browse(a, url, nil)
		if err != nil || serial != 2 {
			t.Fatalf("without key: certificate %d, %v", serial, err)
		}
		return strings.Contains(log.String(), "server.tls.key_file: no such file or directory")
	})
	if strings.Contains(log.String(), "the-key.pem") {
		t.Errorf("the log shows where the key is:\n%s", log.String())
	}
}

func TestClientCertificatesProtectAllButTheProbes(t *testing.T) {
	ours, foreign := testkit.NewAuthority(t), testkit.NewAuthority(t)
	o, _ := withTLS(t, ours, true)
	o.Pprof = true
	url := start(t, o)
	known := load(t, ours)
	for _, path := range []string{"/", "/api/status", "/metrics", "/debug/pprof/cmdline",
		"/assets/status.js"} {
		if status, _, err := browse(ours, url+path, nil); err != nil ||
			status != http.StatusForbidden {
			t.Errorf("%s without a certificate: got %d, %v", path, status, err)
		}
		if status, _, err := browse(ours, url+path, known); err != nil || status != http.StatusOK {
			t.Errorf("%s with a certificate: got %d, %v", path, status, err)
		}
		if status, _, err := browse(ours, url+path, load(t, foreign)); err == nil &&
			status == http.StatusOK {
			t.Errorf("%s with a certificate of another authority: got %d", path, status)
		}
	}
	for _, path := range []string{"/healthz", "/readyz"} {
		if status, _, err := browse(ours, url+path, nil); err != nil || status != http.StatusOK {
			t.Errorf("%s without a certificate: got %d, %v", path, status, err)
		}
	}
}

func TestCertificateAndPasswordAreBothAskedFor(t *testing.T) {
	a := testkit.NewAuthority(t)
	o, _ := withTLS(t, a, true)
	o.Auth = server.Auth{Username: "ops", Password: password}
	url := start(t, o)
	if status, _, err := browse(a, url, load(t, a)); err != nil ||
		status != http.StatusUnauthorized {
		t.Errorf("certificate alone: got %d, %v", status, err)
	}
	withPassword := strings.Replace(url, "//", "//ops:"+strings.ReplaceAll(password, " ", "%20")+
		"@", 1)
	if status, _, err := browse(a, withPassword, nil); err != nil ||
		status != http.StatusForbidden {
		t.Errorf("password alone: got %d, %v", status, err)
	}
	if status, _, err := browse(a, withPassword, load(t, a)); err != nil ||
		status != http.StatusOK {
		t.Errorf("both: got %d, %v", status, err)
	}
}

// A client whose authority is taken away is out with its next connection, also if it could resume
// an old session.
func TestNewAuthoritiesHoldForTheNextConnection(t *testing.T) {
	a, later := testkit.NewAuthority(t), testkit.NewAuthority(t)
	o, _ := withTLS(t, a, true)
	url := start(t, o)
	client := load(t, a)
	sessions := tls.NewLRUClientSessionCache(4)
	config := &tls.Config{RootCAs: a.Pool(), Certificates: []tls.Certificate{*client},
		ClientSessionCache: sessions}
	ask := func() int {
		answer, err := (&http.Client{Transport: &http.Transport{TLSClientConfig: config,
			DisableKeepAlives: true}}).Get(url)
		if err != nil {
			return 0 // refused while the connection was made
		}
		defer answer.Body.Close()
		return answer.StatusCode
	}
	if got := ask(); got != http.StatusOK {
		t.Fatalf("got %d", got)
	}
	save(t, o.TLS.ClientCAFile, later.PEM())
	testkit.Eventually(t, time.Minute, "the refusal of the old client", func() bool {
		return ask() != http.StatusOK
	})
}

func TestUnusableFilesStopTheStart(t *testing.T) {
	a := testkit.NewAuthority(t)
	for _, c := range []struct {
		name  string
		spoil func(*server.Options)
		want  string
	}{
		{"no key", func(o *server.Options) { o.TLS.KeyFile += ".none" },
			"server.tls.key_file: no such file or directory"},
		{"the key is no key", func(o *server.Options) { save(t, o.TLS.KeyFile, []byte("no key")) },
			"server.tls.cert_file and key_file: tls: failed to find any PEM data in key input"},
		{"no authorities", func(o *server.Options) {
			save(t, o.TLS.ClientCAFile, []byte("nothing"))
		}, "server.tls.client_ca_file: holds no certificate in PEM form"},
	} {
		o, _ := withTLS(t, a, true)
		c.spoil(&o)
		if _, err := server.New(o); err == nil || err.Error() != c.want {
			t.Errorf("%s: got %v, want %s", c.name, err, c.want)
		}
	}
}

func load(t *testing.T, a *testkit.Authority) *tls.Certificate {
	t.Helper()
	pair, err := tls.X509KeyPair(a.Issue(testkit.Leaf{Serial: 9}))
	if err != nil {
		t.Fatal(err)
	}
	return &pair
}
