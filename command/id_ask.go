package command

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/kdedup/kdedup/config"
	"github.com/kdedup/kdedup/connect"
	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/process/lookup"
)

const askTimeout = 20 * time.Second // longer than the process takes for a look-up at most

// askProcess looks an ID up in the process of this configuration that runs on this machine, as its
// status page does.
func askProcess(
	ctx context.Context, c config.Config, t config.Topic, ids []dedup.ID,
) (found lookup.Answer, err error) {
	client, server, err := clientOf(c.Server)
	if err != nil {
		return found, err
	}
	defer client.CloseIdleConnections()
	for _, id := range ids {
		var answer lookup.Answer
		if err = post(
			ctx, client, server+"/api/lookup", c.Server.Auth, t, id, &answer,
		); err != nil {
			return found, fmt.Errorf("ask the process at %s: %w", server, err)
		}
		if answer.Seen || found.ID == "" {
			found = answer
		}
		if found.Seen {
			break
		}
	}
	scope := connect.ScopeOf(t, "")
	if want := scope.ConsumerGroup + "/" + scope.Name; found.Scope != want {
		return found, fmt.Errorf("the process at %s has the scope %s, not %s: its configuration is "+
			"another one", server, found.Scope, want)
	}
	return found, nil
}

// askFirst asks the process of this machine before a claim log is read for a single ID. It reports
// whether there is such a process and it answers.
func (q asked) askFirst(ctx context.Context) (found lookup.Answer, answers bool) {
	if !q.config.Store.Logs() {
		return found, false
	}
	err := hasStore(ctx, q.config)
	if err == nil {
		found, err = askProcess(ctx, q.config, q.topic, q.ids)
	}
	if err != nil {
		q.log.Debug("the claim log is read, because no process answers for it", "error", err)
	}
	return found, err == nil
}

// hasStore refuses a process that has another store: that of another cluster, for example, whose
// topics and groups have the same names.
func hasStore(ctx context.Context, c config.Config) error {
	client, server, err := clientOf(c.Server)
	if err != nil {
		return err
	}
	defer client.CloseIdleConnections()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, server+"/api/config", nil)
	if err != nil {
		return err
	}
	var theirs []struct{ Name, Value string }
	if err := send(client, request, c.Server.Auth, &theirs); err != nil {
		return err
	}
	values := make(map[string]string)
	for _, s := range theirs {
		values[s.Name] = s.Value
	}
	for _, s := range c.Settings() {
		if own := s.Path == "kafka.brokers" || strings.HasPrefix(s.Path, "store."); own &&
			values[s.Path] != s.Value {
			return fmt.Errorf("the process at %s has another %s", server, s.Path)
		}
	}
	return nil
}

// changeInProcess has the process release or claim the ID that it was asked about.
func changeInProcess(
	ctx context.Context, q asked, path string, about lookup.Answer,
) (said string, err error) {
	client, server, err := clientOf(q.config.Server)
	if err != nil {
		return "", err
	}
	defer client.CloseIdleConnections()
	id := []byte(about.ID)
	if about.Hex {
		if id, err = hex.DecodeString(about.ID); err != nil {
			return "", fmt.Errorf("the process at %s told the ID %q: %w", server, about.ID, err)
		}
	}
	var answer struct{ Said string }
	err = post(ctx, client, server+path, q.config.Server.Auth, q.topic, dedup.ID(id), &answer)
	if err != nil {
		return "", fmt.Errorf("ask the process at %s: %w", server, err)
	}
	return answer.Said, nil
}

// post sends a question about an ID, and reads what the process answers.
func post(
	ctx context.Context, client *http.Client, address string, auth config.ServerAuth,
	t config.Topic, id dedup.ID, answer any,
) error {
	form := url.Values{"topic": {t.Input}, "id": {hex.EncodeToString([]byte(id))}, "hex": {"1"}}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, address,
		strings.NewReader(form.Encode()))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	return send(client, request, auth, answer)
}

func send(
	client *http.Client, request *http.Request, auth config.ServerAuth, answer any,
) error {
	if auth.Username != "" {
		request.SetBasicAuth(auth.Username, auth.Password.Reveal())
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, 1<<20))
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		var refusal struct{ Error string }
		_ = json.Unmarshal(body, &refusal) // what is none is told as it is
		return fmt.Errorf("%s: %s", response.Status,
			cmp.Or(refusal.Error, strings.TrimSpace(string(body))))
	}
	return json.Unmarshal(body, answer)
}

// askedAt is where this machine asks a process with that server.listen. The port is 0 for any free
// one, which the log of the process tells.
func askedAt(listen string) (host, port string, err error) {
	host, port, err = net.SplitHostPort(listen)
	if config.IsAnyAddress(host) {
		host = "127.0.0.1"
	}
	return host, port, err
}

// clientOf sends the password to nobody but the process: to an address of this machine and, with
// TLS, to the holder of the certificate in the file.
func clientOf(c config.Server) (*http.Client, string, error) {
	host, port, err := askedAt(c.Listen)
	if err != nil {
		return nil, "", err
	}
	if port == "0" {
		return nil, "", errors.New("server.listen has no fixed port, at which the process could " +
			"be asked")
	}
	transport, scheme := &http.Transport{}, "http" // without a proxy
	if c.TLS.CertFile != "" {
		own, err := tls.LoadX509KeyPair(c.TLS.CertFile, c.TLS.KeyFile)
		if err != nil {
			return nil, "", fmt.Errorf("server.tls: %w", err)
		}
		scheme = "https"
		transport.TLSClientConfig = &tls.Config{
			InsecureSkipVerify: true, // in the place of names and authorities: it is this one
			VerifyConnection: func(s tls.ConnectionState) error {
				if !bytes.Equal(s.PeerCertificates[0].Raw, own.Certificate[0]) {
					return errors.New("the certificate is not that of server.tls.cert_file")
				}
				return nil
			},
		}
	}
	return &http.Client{Transport: transport, Timeout: askTimeout,
		CheckRedirect: func(*http.Request, []*http.Request) error {
			return http.ErrUseLastResponse
		}}, scheme + "://" + net.JoinHostPort(host, port), nil
}
