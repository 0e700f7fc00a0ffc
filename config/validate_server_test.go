package config

import (
	"os"
	"path/filepath"
	"testing"
)

func TestServerRules(t *testing.T) {
	file := filepath.Join(t.TempDir(), "some.pem")
	if err := os.WriteFile(file, []byte("pem"), 0o600); err != nil {
		t.Fatal(err)
	}
	auth := ServerAuth{Username: "ops", Password: "long enough"}
	pair := ServerTLS{CertFile: file, KeyFile: file}
	withCA := ServerTLS{CertFile: file, KeyFile: file, ClientCAFile: file}
	testRules(t, []string{"orders"}, []rule{
		{"names", func(c *Config) { c.Server.Hosts = []string{"kdedup.example", "k"} }, ""},
		{"a name with a port", func(c *Config) { c.Server.Hosts = []string{"k", "k:80"} },
			`server.hosts[1]: must be a host name without a port, got "k:80"`},
		{"an empty name", func(c *Config) { c.Server.Hosts = []string{""} },
			`server.hosts[0]: must be a host name without a port, got ""`},
		{"name and password", func(c *Config) { c.Server.Auth = auth }, ""},
		{"password alone", func(c *Config) { c.Server.Auth = ServerAuth{Password: auth.Password} },
			"server.auth.username: is required with password"},
		{"name alone", func(c *Config) { c.Server.Auth = ServerAuth{Username: "ops"} },
			"server.auth.password: is required with username"},
		{"short password", func(c *Config) {
			c.Server.Auth = ServerAuth{Username: "ops", Password: "1234567"}
		},
			"server.auth.password: must be at least 8 bytes long"},
		{"name with a colon", func(c *Config) {
			c.Server.Auth = ServerAuth{Username: "a:b", Password: auth.Password}
		},
			"server.auth.username: must not contain ':', which ends the name in HTTP"},
		{"certificate and key", func(c *Config) { c.Server.TLS = pair }, ""},
		{"all three files", func(c *Config) { c.Server.TLS = withCA }, ""},
		{"certificate alone", func(c *Config) { c.Server.TLS = ServerTLS{CertFile: file} },
			"server.tls.key_file: is required with cert_file and client_ca_file"},
		{"key alone", func(c *Config) { c.Server.TLS = ServerTLS{KeyFile: file} },
			"server.tls.cert_file: is required with key_file and client_ca_file"},
		{"authorities alone", func(c *Config) { c.Server.TLS = ServerTLS{ClientCAFile: file} },
			"server.tls.key_file: is required with cert_file and client_ca_file\n" +
				"server.tls.cert_file: is required with key_file and client_ca_file"},
		{"a file that is not there", func(c *Config) {
			c.Server.TLS = ServerTLS{CertFile: file, KeyFile: file, ClientCAFile: file + ".none"}
		}, "server.tls.client_ca_file: must be a readable file: open " + file +
			".none: no such file or directory"},
		{"profiler on localhost", func(c *Config) { c.Server.Pprof = true }, ""},
		{"profiler on localhost, IPv6", func(c *Config) {
			c.Server.Pprof, c.Server.Listen = true, "[::1]:9480"
		}, ""},
		{"profiler for everybody", func(c *Config) {
			c.Server.Pprof, c.Server.Listen = true, ":9480"
		},
			"server.pprof: needs server.auth or server.tls.client_ca_file when server.listen is " +
				"not a loopback address"},
		{"profiler with a password", func(c *Config) {
			c.Server.Pprof, c.Server.Listen, c.Server.Auth = true, ":9480", auth
		}, ""},
		{"profiler with certificates", func(c *Config) {
			c.Server.Pprof, c.Server.Listen, c.Server.TLS = true, ":9480", withCA
		}, ""},
	})
}
