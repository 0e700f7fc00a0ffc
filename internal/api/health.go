package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"connectrpc.com/connect"
	"connectrpc.com/grpchealth"
)

// health answers probes, which have no credentials: one word, and no reason.
type health struct {
	why      func(context.Context) error
	services []string

	mu    sync.Mutex
	asked time.Time
	last  error
}

const (
	askEvery   = time.Second
	askTimeout = 2 * time.Second // orchestrators give up after a second or a few
)

var _ grpchealth.Checker = (*health)(nil)

func newHealth(why func(context.Context) error, services []string) *health {
	return &health{why: why, services: services}
}

// problem asks once a second at the most. Who comes meanwhile waits for the answer.
func (h *health) problem(ctx context.Context) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if time.Since(h.asked) < askEvery {
		return h.last
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), askTimeout)
	defer cancel()
	h.last = h.why(ctx)
	h.asked = time.Now()
	return h.last
}

// Check implements grpchealth.Checker.
func (h *health) Check(
	ctx context.Context, r *grpchealth.CheckRequest,
) (*grpchealth.CheckResponse, error) {
	if r.Service != "" && !slices.Contains(h.services, r.Service) {
		return nil, connect.NewError(connect.CodeNotFound, errors.New("unknown service"))
	}
	if h.problem(ctx) != nil {
		return &grpchealth.CheckResponse{Status: grpchealth.StatusNotServing}, nil
	}
	return &grpchealth.CheckResponse{Status: grpchealth.StatusServing}, nil
}

func (h *health) ready(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	if h.problem(r.Context()) != nil {
		http.Error(w, "not ready", http.StatusServiceUnavailable)
		return
	}
	fmt.Fprintln(w, "ready")
}

// healthy answers as long as the process can: a store that is down is no reason to restart it.
func healthy(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") }
