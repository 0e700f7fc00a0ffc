package server

import (
	"context"
	"sync"
	"time"
)

// StoreCheck is the name of the check that asks the store. The page takes the store's health from it.
const StoreCheck = "store"

// How often the checks are made for the page: soon again while one fails. Each costs the store a read.
const (
	probeEvery = 10 * time.Second
	probeAgain = 2 * time.Second
)

// prober makes the checks of /readyz for the page, so that a look at it costs nothing.
type prober struct {
	checks func() []Check
	clean  func(string) string

	mu    sync.Mutex
	found []checkStatus // empty before the first round ended
	at    time.Time
}

func (p *prober) run(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		if p.round(ctx) {
			timer.Reset(probeEvery)
		} else {
			timer.Reset(probeAgain)
		}
	}
}

// round makes all checks within checkTimeout.
func (p *prober) round(ctx context.Context) (ready bool) {
	bounded, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	ready = true
	checks := p.checks()
	found := make([]checkStatus, len(checks))
	for i, check := range checks {
		found[i] = checkStatus{Name: check.Name, OK: true}
		if err := check.Func(bounded); err != nil {
			ready, found[i].OK, found[i].Error = false, false, p.clean(err.Error())
		}
	}
	if ctx.Err() != nil {
		return ready // the process stops: that is no answer of a server
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.found, p.at = found, time.Now()
	return ready
}

// results is what the last round found.
func (p *prober) results(now time.Time) (state string, checks []checkStatus) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.at.IsZero() {
		return "starting", []checkStatus{}
	}
	state = "ready"
	checks = append([]checkStatus{}, p.found...)
	for i := range checks {
		checks[i].At = moment{p.at, now}
		if !checks[i].OK {
			state = "not_ready"
		}
	}
	return state, checks
}
