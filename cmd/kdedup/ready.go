package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"time"

	"github.com/spf13/cobra"
)

// newReady exists for container health checks: the image has no shell and no curl.
func newReady() *cobra.Command {
	var trust trusted
	cmd := &cobra.Command{
		Use:   "ready [URL]",
		Short: "Ask a running kdedup whether it is ready",
		Long: "Ask /readyz of a running kdedup, by default that of this machine. A server on the " +
			"loopback may show any\n" +
			"certificate, unless --ca says which authority must have signed it.",
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			url := "http://127.0.0.1:9480/readyz"
			if trust != (trusted{}) {
				url = "https://127.0.0.1:9480/readyz"
			}
			if len(args) == 1 {
				url = args[0]
			}
			return trust.askReady(cmd.Context(), url, cmd.OutOrStdout())
		},
	}
	cmd.Flags().StringVar(&trust.ca, "ca", "",
		"PEM `FILE` with the authorities that may sign the server's certificate")
	cmd.Flags().StringVar(&trust.serverName, "server-name", "",
		"`NAME` in the server's certificate, in place of the URL's host")
	return cmd
}

// trusted says which server is believed; the zero value means the system's authorities.
type trusted struct{ ca, serverName string }

func (t trusted) askReady(ctx context.Context, url string, out io.Writer) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return usageError{err}
	}
	client, err := t.client(request.URL)
	if err != nil {
		return usageError{err}
	}
	answer, err := client.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if _, err := io.Copy(out, answer.Body); err != nil {
		return fmt.Errorf("read the answer of %s: %w", url, err)
	}
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("not ready: %s", answer.Status)
	}
	return nil
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
	return &http.Client{Transport: &http.Transport{
		Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true, TLSClientConfig: config,
	}}, nil
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
