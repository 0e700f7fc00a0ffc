package server

import (
	"context"
	"sync"
	"time"
)

// StoreCheck is the name of the check that asks the store. The page takes the store's health from
// it.
const StoreCheck = "store"

// How often the checks are made for the page: soon again while one fails. Each costs the store a
// read.
const (
	probeEvery = 10 * time.Second
	probeAgain = 2 * time.Second
)

// probeLife is how long /readyz answers with what it found: asking more often costs the store
// nothing.
const probeLife = time.Second

// prober makes the checks of /readyz, for all that ask and for the page.
type prober struct {
	checks func() []Check
	clean  func(string) string

	asking sync.Mutex // held while /readyz makes a round, which the others wait for

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

// fresh is what was found a second ago or later. A round that somebody asked for is made to its
// end, whether they wait for it or not: it is the answer to others, too.
func (p *prober) fresh() []checkStatus {
	p.asking.Lock()
	defer p.asking.Unlock()
	p.mu.Lock()
	found, at := p.found, p.at
	p.mu.Unlock()
	if time.Since(at) < probeLife {
		return found
	}
	p.round(context.Background())
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.found
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
		if check.Notes != nil {
			for _, note := range check.Notes() {
				found[i].notes = append(found[i].notes, p.clean(note))
			}
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
