package server

import (
	"bytes"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"sync"
	"time"
)

// TLS names the PEM files of the server. Without CertFile nothing is encrypted; ClientCAFile is
// optional.
type TLS struct{ CertFile, KeyFile, ClientCAFile string }

// certificates follows the files. Every new connection looks at them, at most once a second, so a
// renewed certificate needs no restart.
type certificates struct {
	files TLS
	log   *slog.Logger

	mu     sync.Mutex
	looked time.Time
	seen   [sha256.Size]byte // of the contents that were tried last
	warned string            // the problem that was logged last
	inUse  *tls.Config
}

const lookEvery = time.Second

func newCertificates(files TLS, log *slog.Logger) (*certificates, error) {
	c := &certificates{files: files, log: log}
	pem, err := c.read()
	if err != nil {
		return nil, err
	}
	if c.inUse, err = pem.config(); err != nil {
		return nil, err
	}
	c.seen, c.looked = pem.digest(), time.Now()
	return c, nil
}

// config asks for the files' present content at each handshake.
func (c *certificates) config() *tls.Config {
	return &tls.Config{
		MinVersion:         tls.VersionTLS12,
		NextProtos:         []string{"h2", "http/1.1"},
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return c.current(time.Now()), nil },
	}
}

func (c *certificates) current(now time.Time) *tls.Config {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now.Sub(c.looked) >= lookEvery {
		c.looked = now
		c.reloadLocked()
	}
	return c.inUse
}

// reloadLocked keeps what is in use when the new files are unusable: the key may just not have been
// written yet.
func (c *certificates) reloadLocked() {
	pem, err := c.read()
	if err == nil && pem.digest() == c.seen {
		return
	}
	var fresh *tls.Config
	if err == nil {
		c.seen = pem.digest()
		fresh, err = pem.config()
	}
	if err != nil {
		c.warnLocked(err)
		return
	}
	c.inUse, c.warned = fresh, ""
	c.log.Info("certificates read again", "expires", fresh.Certificates[0].Leaf.NotAfter)
}

// warnLocked says each problem once.
func (c *certificates) warnLocked(err error) {
	if c.warned == err.Error() {
		return
	}
	c.warned = err.Error()
	c.log.Warn("the new certificates are unusable, the old ones stay in use", "error", err)
}

// pemFiles are the contents of the three files.
type pemFiles struct{ cert, key, clientCA []byte }

func (c *certificates) read() (p pemFiles, err error) {
	for _, f := range []struct {
		setting, path string
		into          *[]byte
	}{
		{"cert_file", c.files.CertFile, &p.cert}, {"key_file", c.files.KeyFile, &p.key}, {"client_ca_file", c.files.ClientCAFile, &p.clientCA},
	} {
		if f.path == "" {
			continue
		}
		if *f.into, err = os.ReadFile(f.path); err != nil {
			return pemFiles{}, fmt.Errorf("server.tls.%s: %w", f.setting, withoutPath(err))
		}
	}
	return p, nil
}

// withoutPath keeps the places of keys out of logs.
func withoutPath(err error) error {
	var inFile *fs.PathError
	if errors.As(err, &inFile) {
		return inFile.Err
	}
	return err
}

func (p pemFiles) digest() [sha256.Size]byte {
	return sha256.Sum256(bytes.Join([][]byte{p.cert, p.key, p.clientCA}, []byte{0}))
}

func (p pemFiles) config() (*tls.Config, error) {
	pair, err := tls.X509KeyPair(p.cert, p.key)
	if err != nil {
		return nil, fmt.Errorf("server.tls.cert_file and key_file: %w", err)
	}
	config := &tls.Config{
		MinVersion:   tls.VersionTLS12,
		NextProtos:   []string{"h2", "http/1.1"},
		Certificates: []tls.Certificate{pair},
		// A resumed session would carry a certificate that new authorities may not have signed.
		SessionTicketsDisabled: true,
	}
	if p.clientCA == nil {
		return config, nil
	}
	config.ClientCAs = x509.NewCertPool()
	if !config.ClientCAs.AppendCertsFromPEM(p.clientCA) {
		return nil, errors.New("server.tls.client_ca_file: holds no certificate in PEM form")
	}
	config.ClientAuth = tls.VerifyClientCertIfGiven // probes have none; guard insists on it for all else
	return config, nil
}
