package certs

import (
	"crypto/tls"
	"log/slog"
)

// ServerFiles are a server's certificate, its key and, optionally, the authorities that sign the
// certificates of its clients.
type ServerFiles struct{ CertFile, KeyFile, ClientCAFile string }

// Server follows a server's files. Errors and logs name the files by their settings in the section.
func Server(section string, files ServerFiles, log *slog.Logger) (*Follower, error) {
	f := &Follower{
		section: section, log: log,
		files: []file{{"cert_file", files.CertFile}, {"key_file", files.KeyFile},
			{"client_ca_file", files.ClientCAFile}},
		make: server,
	}
	return f.start()
}

// protocols are offered by the outer configuration as well as by those that it hands out.
var protocols = []string{"h2", "http/1.1"}

// Listening is a server's configuration that asks for the files' present content at each handshake.
func (f *Follower) Listening() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12,
		NextProtos: protocols,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
			return f.Current(), nil
		},
	}
}

func server(contents [][]byte) (*tls.Config, error) {
	own, err := pair(contents[0], contents[1])
	if err != nil {
		return nil, err
	}
	config := &tls.Config{
		MinVersion:   tls.VersionTLS12,
		NextProtos:   protocols,
		Certificates: []tls.Certificate{own},
		// A resumed session would carry a certificate that new authorities may not have signed.
		SessionTicketsDisabled: true,
	}
	if config.ClientCAs, err = authorities("client_ca_file", contents[2]); err != nil {
		return nil, err
	}
	if config.ClientCAs != nil {
		// probes have none; guard insists on it for all else
		config.ClientAuth = tls.VerifyClientCertIfGiven
	}
	return config, nil
}
