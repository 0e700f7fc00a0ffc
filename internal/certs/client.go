package certs

import (
	"crypto/tls"
	"fmt"
	"log/slog"
	"time"
)

// ClientFiles are what a client needs to know a server and to show who it is itself. All are
// optional.
type ClientFiles struct {
	// authorities that may sign the server's certificate; the system's if empty
	CAFile            string
	CertFile, KeyFile string // the client's own
	// that the server's certificate must carry; the host that is dialled if empty
	ServerName string
}

// Client follows a client's files. Errors and logs name the files by their settings in the section.
func Client(section string, files ClientFiles, log *slog.Logger) (*Follower, error) {
	f := &Follower{
		section: section, log: log,
		files: []file{{"ca_file", files.CAFile}, {"cert_file", files.CertFile},
			{"key_file", files.KeyFile}},
		make: func(contents [][]byte) (*tls.Config, error) {
			return client(contents, files.ServerName)
		},
	}
	started, err := f.start()
	if err != nil {
		return nil, err
	}
	return started, started.expired()
}

func client(contents [][]byte, serverName string) (*tls.Config, error) {
	roots, err := authorities("ca_file", contents[0])
	if err != nil {
		return nil, err
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: serverName, RootCAs: roots}
	if contents[1] == nil {
		return config, nil
	}
	own, err := pair(contents[1], contents[2])
	if err != nil {
		return nil, err
	}
	config.Certificates = []tls.Certificate{own}
	return config, nil
}

// expired refuses a certificate at the start, where the reason can be told: a server would only
// break the connection. Later it must not keep new authorities from being taken.
func (f *Follower) expired() error {
	for _, own := range f.inUse.Certificates {
		if end := own.Leaf.NotAfter; time.Now().After(end) {
			return fmt.Errorf("%s.cert_file: the certificate expired at %s; renew it", f.section,
				end.UTC().Format(time.RFC3339))
		}
	}
	return nil
}
