package command

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/kdedup/kdedup/config"
)

// newReady exists for container health checks: the image has no shell and no curl.
func newReady() *cobra.Command {
	var trust trusted
	cmd := &cobra.Command{
		Use:   "ready [URL]",
		Short: "Ask a running kdedup whether it is ready",
		Long: "Ask /readyz of a running kdedup, by default that of this machine, whatever the path " +
			"of the URL. Ready is what\n" +
			"answers as a kdedup does that is ready: another server on the port is not. A server " +
			"on the loopback may show\n" +
			"any certificate, unless --ca says which authority must have signed it.",
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			url, err := trust.addressOf(args, "/readyz")
			if err != nil {
				return usageError{err}
			}
			return trust.askReady(cmd.Context(), url, cmd.OutOrStdout())
		},
	}
	trust.add(cmd)
	return cmd
}

// addressOf is the address of a path at the server of the argument, which may be told as host:port
// or by the address of any of its pages. Without one it is that of this machine, at the address
// that the environment tells a process to listen at.
func (t trusted) addressOf(args []string, path string) (string, error) {
	scheme, server := "http", "127.0.0.1:9480"
	if listen := os.Getenv(config.EnvName("server.listen")); listen != "" && len(args) == 0 {
		host, port, err := askedAt(listen)
		if err != nil {
			return "", fmt.Errorf("%s: %w", config.EnvName("server.listen"), err)
		}
		if port != "0" {
			server = net.JoinHostPort(host, port)
		}
	}
	if t != (trusted{}) {
		scheme = "https"
	}
	if len(args) == 1 {
		server = args[0]
	}
	if !strings.Contains(server, "://") {
		server = scheme + "://" + server
	}
	u, err := url.Parse(server)
	if err != nil {
		return "", err
	}
	if (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
		return "", fmt.Errorf("the URL must be like http://127.0.0.1:9480, got %s", u.Redacted())
	}
	u.Path, u.RawPath, u.RawQuery, u.Fragment = path, "", "", ""
	return u.String(), nil
}

// saysReady reports whether an answer is that of a kdedup which is ready: one word, or a line for
// each check, with notes that are indented.
func saysReady(body string) bool {
	body = strings.TrimSpace(body)
	if body == "ready" {
		return true
	}
	for line := range strings.Lines(body) {
		line = strings.TrimRight(line, "\r\n")
		if !strings.HasPrefix(line, "  ") && !strings.HasSuffix(line, ": ok") {
			return false
		}
	}
	return strings.HasPrefix(body, "store: ") // the first check of every process
}

// trusted says which server is believed; the zero value means the system's authorities.
type trusted struct{ ca, serverName string }

func (t *trusted) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&t.ca, "ca", "",
		"PEM `FILE` with the authorities that may sign the server's certificate")
	cmd.Flags().StringVar(&t.serverName, "server-name", "",
		"`NAME` in the server's certificate, in place of the URL's host")
}

const mostOfReadyz = 1 << 20

func (t trusted) askReady(ctx context.Context, url string, out io.Writer) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return usageError{err}
	}
	answer, err := t.do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(io.LimitReader(answer.Body, mostOfReadyz))
	if err != nil {
		return fmt.Errorf("read the answer of %s: %w", url, err)
	}
	if _, err := out.Write(body); err != nil {
		return err
	}
	switch {
	case answer.StatusCode != http.StatusOK:
		return fmt.Errorf("not ready: %s answers %s", url, answer.Status)
	case !saysReady(string(body)):
		return fmt.Errorf("%s answered, but not as a kdedup that is ready: does another server "+
			"listen there?", url)
	}
	return nil
}

// do asks a process, and says what to do where none listens.
func (t trusted) do(request *http.Request) (*http.Response, error) {
	client, err := t.client(request.URL)
	if err != nil {
		return nil, usageError{err}
	}
	answer, err := client.Do(request)
	if errors.Is(err, syscall.ECONNREFUSED) {
		return nil, fmt.Errorf("no process listens at %s: start kdedup run, or name the address "+
			"that its log tells: %w", request.URL.Host, err)
	}
	return answer, err
}

// client does not verify the certificate of a server on the loopback unless it was told how: a
// probe of one's own process sends nothing, and the certificate is for another name.
func (t trusted) client(url *url.URL) (*http.Client, error) {
	if t != (trusted{}) && url.Scheme != "https" {
		return nil, fmt.Errorf("--ca and --server-name need an https URL, got %s", url)
	}
	config := &tls.Config{ServerName: t.serverName, InsecureSkipVerify: t == (trusted{}) &&
		isLoopback(url.Hostname())}
	if t.ca != "" {
		pem, err := os.ReadFile(t.ca)
		if err != nil {
			return nil, fmt.Errorf("--ca: %w", err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("--ca: %s holds no certificate in PEM form", t.ca)
		}
	}
	return &http.Client{
		Transport: &http.Transport{
			Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true, TLSClientConfig: config,
		},
		// kdedup sends nobody elsewhere, as a login page does
		CheckRedirect: func(*http.Request, []*http.Request) error {
			return http.ErrUseLastResponse
		},
	}, nil
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
