package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/spf13/cobra"
)

// newReady exists for container health checks: the image has no shell and no curl.
func newReady() *cobra.Command {
	return &cobra.Command{
		Use:   "ready [URL]",
		Short: "Ask a running kdedup whether it is ready",
		Args:  cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			url := "http://127.0.0.1:9480/readyz"
			if len(args) == 1 {
				url = args[0]
			}
			return askReady(cmd.Context(), url, cmd.OutOrStdout())
		},
	}
}

func askReady(ctx context.Context, url string, out io.Writer) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return usageError{err}
	}
	answer, err := readyClient(request.URL.Hostname()).Do(request)
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

// readyClient does not verify the certificate of a server on the loopback: a probe of one's own process
// sends nothing, and the certificate is for another name.
func readyClient(host string) *http.Client {
	ip := net.ParseIP(host)
	if host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return http.DefaultClient
	}
	return &http.Client{Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
}
