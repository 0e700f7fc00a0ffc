package certs

import (
	"crypto/tls"
	"fmt"
	"log/slog"
	"time"
)

// ClientFiles are what a client needs to know a server and to show who it is itself. All are optional.
type ClientFiles struct {
	CAFile            string // authorities that may sign the server's certificate; the system's if empty
	CertFile, KeyFile string // the client's own
	ServerName        string // that the server's certificate must carry; the host that is dialled if empty
}

// Client follows a client's files. Errors and logs name the files by their settings in the section.
func Client(section string, files ClientFiles, log *slog.Logger) (*Follower, error) {
	f := &Follower{
		section: section, log: log,
		files: []file{{"ca_file", files.CAFile}, {"cert_file", files.CertFile}, {"key_file", files.KeyFile}},
		make:  func(contents [][]byte) (*tls.Config, error) { return client(contents, files.ServerName) },
	}
	return f.start()
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
	return config, current(own)
}

// current refuses a certificate that has expired here, where the reason can be told: a server would only
// break the connection.
func current(own tls.Certificate) error {
	if end := own.Leaf.NotAfter; time.Now().After(end) {
		return fmt.Errorf("cert_file: the certificate expired at %s; renew it", end.UTC().Format(time.RFC3339))
	}
	return nil
}
