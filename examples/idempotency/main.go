// Idempotency is a payment server whose clients may repeat every request: a payment is made once
// per Idempotency-Key. See README.md beside this file.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/kdedup/kdedup/idempotency"
	"github.com/kdedup/kdedup/idempotency/embedded"
	"github.com/kdedup/kdedup/idempotency/httpidempotency"
	"github.com/kdedup/kdedup/idempotency/memory"
)

func main() {
	listen := flag.String("listen", "127.0.0.1:8080", "address to listen on")
	data := flag.String("data", "",
		"directory for keys and responses, which a restart remembers; none: memory")
	delay := flag.Duration("delay", 0, "how long a payment takes")
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	listener, err := net.Listen("tcp", *listen)
	if err == nil {
		slog.Info("listening", "address", listener.Addr())
		err = run(ctx, listener, *data, *delay)
	}
	if err != nil {
		slog.Error("stopped", "error", err)
		os.Exit(1)
	}
}

// run serves until the context ends.
func run(ctx context.Context, listener net.Listener, data string, delay time.Duration) error {
	store, closeStore, err := openStore(data)
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	handler, err := newHandler(store, delay)
	if err != nil {
		return errors.Join(err, listener.Close(), closeStore())
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	select {
	case err = <-served:
	case <-ctx.Done():
		// Payments that are under way end, and are recorded.
		limit, cancel := context.WithTimeout(context.Background(), delay+10*time.Second)
		defer cancel()
		err = server.Shutdown(limit)
		<-served
	}
	return errors.Join(err, closeStore())
}

func openStore(data string) (store idempotency.Store, closeStore func() error, err error) {
	if data == "" {
		return memory.New(), func() error { return nil }, nil
	}
	files, err := embedded.Open(embedded.Options{Path: data, Logger: slog.Default()})
	if err != nil {
		return nil, nil, err
	}
	return files, files.Close, nil
}

func newHandler(store idempotency.Store, delay time.Duration) (http.Handler, error) {
	executor, err := idempotency.New(store, idempotency.Options{Logger: slog.Default()})
	if err != nil {
		return nil, err
	}
	protect, err := httpidempotency.New(executor,
		httpidempotency.Options{Namespace: customer, Logger: slog.Default()})
	if err != nil {
		return nil, err
	}
	bank := newBank(delay)
	mux := http.NewServeMux()
	mux.Handle("POST /payments", protect(http.HandlerFunc(bank.pay)))
	mux.HandleFunc("GET /balance", bank.showBalance)
	return mux, nil
}

// customer is whose keys a request uses. A real server checks the password.
func customer(r *http.Request) (string, error) {
	name, _, ok := r.BasicAuth()
	if !ok {
		return "", errors.New("no credentials")
	}
	return fmt.Sprintf("payments/%s", name), nil
}
