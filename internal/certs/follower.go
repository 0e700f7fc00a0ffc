// Package certs follows certificates in PEM files, which are renewed while a process runs.
package certs

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

// Follower makes a TLS configuration of PEM files. Whoever opens a connection asks for the current
// one, so that renewed files need no restart. It is safe for concurrent use.
type Follower struct {
	section string // of the settings, such as kafka.tls
	files   []file
	make    func(contents [][]byte) (*tls.Config, error)
	log     *slog.Logger

	mu     sync.Mutex
	looked time.Time
	seen   [sha256.Size]byte // of the contents that were tried last
	warned string            // the problem that was logged last
	inUse  *tls.Config
}

// file is one that a setting names. Without a path there is none.
type file struct{ setting, path string }

// lookEvery bounds how often the files are read.
const lookEvery = time.Second

// start reads the files, which must be usable.
func (f *Follower) start() (*Follower, error) {
	contents, err := f.read()
	if err != nil {
		return nil, err
	}
	if f.inUse, err = f.make(contents); err != nil {
		return nil, fmt.Errorf("%s.%w", f.section, err)
	}
	f.seen, f.looked = digest(contents), time.Now()
	return f, nil
}

// Current is the configuration for a new connection. The caller must not change it.
func (f *Follower) Current() *tls.Config { return f.at(time.Now()) }

func (f *Follower) at(now time.Time) *tls.Config {
	f.mu.Lock()
	defer f.mu.Unlock()
	if now.Sub(f.looked) >= lookEvery {
		f.looked = now
		f.reloadLocked()
	}
	return f.inUse
}

// reloadLocked keeps what is in use when the new files are unusable: the key may just not have been
// written yet.
func (f *Follower) reloadLocked() {
	contents, err := f.read()
	if err == nil && digest(contents) == f.seen {
		return
	}
	var fresh *tls.Config
	if err == nil {
		f.seen = digest(contents)
		if fresh, err = f.make(contents); err != nil {
			err = fmt.Errorf("%s.%w", f.section, err)
		}
	}
	if err != nil {
		f.warnLocked(err)
		return
	}
	f.inUse, f.warned = fresh, ""
	log := f.log.With("section", f.section)
	for _, own := range fresh.Certificates {
		log = log.With("expires", own.Leaf.NotAfter)
	}
	log.Info("certificates read again")
}

// warnLocked says each problem once.
func (f *Follower) warnLocked(err error) {
	if f.warned == err.Error() {
		return
	}
	f.warned = err.Error()
	f.log.Warn("the new certificates are unusable, the old ones stay in use", "error", err)
}

// read returns the content of each file; nil for one that is not configured.
func (f *Follower) read() ([][]byte, error) {
	contents := make([][]byte, len(f.files))
	for i, file := range f.files {
		if file.path == "" {
			continue
		}
		var err error
		if contents[i], err = os.ReadFile(file.path); err != nil {
			return nil, fmt.Errorf("%s.%s: %w", f.section, file.setting, withoutPath(err))
		}
	}
	return contents, nil
}

// withoutPath keeps the places of keys out of logs.
func withoutPath(err error) error {
	var inFile *fs.PathError
	if errors.As(err, &inFile) {
		return inFile.Err
	}
	return err
}

func digest(contents [][]byte) [sha256.Size]byte {
	return sha256.Sum256(bytes.Join(contents, []byte{0}))
}

// authorities reads a pool; nil, which means the system's, of nothing.
func authorities(setting string, pem []byte) (*x509.CertPool, error) {
	if pem == nil {
		return nil, nil
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("%s: holds no certificate in PEM form", setting)
	}
	return pool, nil
}

// pair reads a certificate and its key.
func pair(cert, key []byte) (tls.Certificate, error) {
	own, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return own, fmt.Errorf("cert_file and key_file: %w", err)
	}
	return own, nil
}
