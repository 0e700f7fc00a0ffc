package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// fleet is the servers that were started for one command.
type fleet struct {
	env       []string // the command's, beside its own
	servers   []server
	temporary string // directory to remove at the end
}

// startFleet starts what the environment does not name. The fleet is never nil.
func (o *options) startFleet(ctx context.Context) (*fleet, error) {
	f := new(fleet)
	missing := slices.DeleteFunc(slices.Clone(o.want), o.given)
	if len(missing) == 0 {
		return f, nil
	}
	dir, err := o.directory(f)
	if err != nil {
		return f, err
	}
	return f, o.tryEngines(ctx, f, missing, dir)
}

// tryEngines starts each server in the first way that works. A way that should work and does not is
// no reason to skip tests.
func (o *options) tryEngines(ctx context.Context, f *fleet, missing []kind, dir string) error {
	var unusable []error
	failed := false
	for _, e := range o.engines {
		wanted, others := e.divide(missing)
		if len(wanted) == 0 {
			continue
		}
		if err := e.find(ctx); err != nil {
			unusable = append(unusable, fmt.Errorf("%s: %w", e.name, err))
			continue
		}
		part := new(fleet)
		if err := o.startAll(ctx, part, e, wanted, dir); err != nil {
			o.stopServers(part)
			o.say("with %s: %v", e.name, err)
			failed = true
			continue
		}
		f.servers, f.env = append(f.servers, part.servers...), append(f.env, part.env...)
		missing = others
	}
	reason := errors.Join(unusable...)
	switch {
	case len(missing) == 0:
		return nil
	case ctx.Err() != nil:
		return fmt.Errorf("start servers: %w", context.Cause(ctx))
	case failed:
		return errors.Join(errors.New("the servers did not start"), reason)
	}
	return o.goWithout(missing, reason)
}

// given says whether the environment names the server.
func (o *options) given(k kind) bool {
	addr := o.getenv(k.variable)
	if addr != "" {
		o.say("%s is %s, as %s says", k.name, addr, k.variable)
	}
	return addr != ""
}

// goWithout is for a machine that cannot start servers.
func (o *options) goWithout(missing []kind, reason error) error {
	var names []string
	for _, k := range missing {
		names = append(names, k.name+" ("+k.variable+")")
	}
	text := fmt.Sprintf("no %s, because no way to start servers works here:\n%v",
		strings.Join(names, ", "), reason)
	if o.ci {
		return fmt.Errorf("%s\nwith CI=true no test may be skipped", text)
	}
	o.say("WARNING: %s\nThe tests that need them will be SKIPPED.", text)
	return nil
}

func (o *options) directory(f *fleet) (string, error) {
	if o.dir != "" {
		return filepath.Abs(o.dir)
	}
	var err error
	f.temporary, err = os.MkdirTemp("", "kdedup-servers-")
	return f.temporary, err
}

// startAll starts the servers at the same time. When one does not start it gives up the others too.
func (o *options) startAll(
	ctx context.Context, f *fleet, e engine, missing []kind, dir string,
) error {
	ctx, giveUp := context.WithCancel(ctx)
	defer giveUp()
	o.say("starting %d servers with %s", len(missing), e.name)
	var (
		wg    sync.WaitGroup
		mu    sync.Mutex // guards f, first and the output
		first error      // those after it come of giving up
	)
	for _, k := range missing {
		wg.Go(func() {
			begin := time.Now()
			s, err := e.start(ctx, k.name, filepath.Join(dir, k.name))
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				first = cmp.Or(first, err)
				giveUp()
				return
			}
			f.servers = append(f.servers, s)
			f.env = append(f.env, k.variable+"="+s.Addr())
			o.say("%s is %s, after %.1fs", k.name, s.Addr(), time.Since(begin).Seconds())
		})
	}
	wg.Wait()
	return first
}

// stop leaves nothing of the fleet behind.
func (o *options) stop(f *fleet) {
	o.stopServers(f)
	if err := os.RemoveAll(f.temporary); err != nil {
		o.say("remove the servers' files: %v", err)
	}
}

// stopServers stops all servers at the same time and returns when they are gone.
func (o *options) stopServers(f *fleet) {
	errs := make([]error, len(f.servers))
	var wg sync.WaitGroup
	for i, s := range f.servers {
		wg.Go(func() { errs[i] = s.Stop() })
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		o.say("%v", err)
	}
	f.servers, f.env = nil, nil
}
