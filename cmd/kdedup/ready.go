package main

import (
	"context"
	"fmt"
	"io"
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
	answer, err := http.DefaultClient.Do(request)
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
