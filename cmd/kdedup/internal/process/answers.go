package process

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"time"

	"github.com/kdedup/kdedup/config"
	"github.com/kdedup/kdedup/internal/server"
)

// AnswersAt reports whether a process of kdedup answers at the address of the server. Probes need
// no password.
func AnswersAt(ctx context.Context, c config.Server) bool {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	host, port, err := net.SplitHostPort(c.Listen)
	if err != nil {
		return false
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "localhost"
	}
	scheme := "http"
	if c.TLS.CertFile != "" {
		scheme = "https"
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet,
		scheme+"://"+net.JoinHostPort(host, port)+"/healthz", http.NoBody)
	if err != nil {
		return false
	}
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true,
		// It is only asked who it is.
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	answer, err := client.Do(request)
	if err != nil {
		return false
	}
	defer answer.Body.Close()
	return answer.Header.Get("Server") == server.Name
}
