package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// login is how a command reads the pages of a running process, as a person does.
type login struct {
	trusted
	username, passwordFile string
}

func (l *login) add(cmd *cobra.Command) {
	l.trusted.add(cmd)
	flags := cmd.Flags()
	flags.StringVar(&l.username, "username", "", "`NAME` of server.auth, where it is set")
	flags.StringVar(&l.passwordFile, "password-file", "", "`FILE` with its password")
}

func (l *login) check() error {
	if (l.username == "") != (l.passwordFile == "") {
		return usageError{errors.New("--username and --password-file belong together")}
	}
	return nil
}

const (
	pageTimeout = 10 * time.Second
	mostOfPage  = 64 << 20
)

// get reads a page whose answer has one of the wanted codes.
func (l *login) get(ctx context.Context, url string, want ...int) (body []byte, err error) {
	ctx, cancel := context.WithTimeout(ctx, pageTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return nil, usageError{err}
	}
	if l.username != "" {
		password, err := os.ReadFile(l.passwordFile)
		if err != nil {
			return nil, usageError{fmt.Errorf("--password-file: %w", err)}
		}
		request.SetBasicAuth(l.username, strings.TrimRight(string(password), "\r\n"))
	}
	answer, err := l.do(request)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	switch {
	case answer.StatusCode == http.StatusUnauthorized:
		return nil, fmt.Errorf("%s wants a password: --username and --password-file", url)
	case !slices.Contains(want, answer.StatusCode):
		return nil, fmt.Errorf("%s answers %s", url, answer.Status)
	}
	body, err = io.ReadAll(io.LimitReader(answer.Body, mostOfPage))
	if err != nil {
		return nil, fmt.Errorf("read the answer of %s: %w", url, err)
	}
	return body, nil
}
