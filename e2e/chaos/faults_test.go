package chaos_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/kdedup/kdedup/internal/pause"
	"github.com/kdedup/kdedup/internal/testkit/servers"
)

// healLimit bounds one heal: a node that starts on a busy machine takes most of a minute.
const healLimit = 5 * time.Minute

// errSkipped says that a fault was not done and does not count.
var errSkipped = errors.New("the process does not run now")

// errGrown ends the faults of the topics.
var errGrown = errors.New("the topics are as wide as they become")

// disturb applies one fault after the other to a part until ctx ends, and heals the last one.
func (s *storm) disturb(ctx context.Context, p part) {
	for f := range schedule(p, s.seed) {
		if !pause.For(ctx, f.After) {
			return
		}
		s.logf("%-9s %v, for %v", p.name, f, f.For)
		start := time.Now()
		err := s.apply(ctx, p, f)
		if errors.Is(err, errGrown) {
			s.logf("%-9s %v", p.name, err)
			return
		}
		if errors.Is(err, errSkipped) {
			s.logf("%-9s skipped: %v", p.name, err)
			continue
		}
		if err != nil {
			s.t.Errorf("%s: %v: %v", p.name, f, err)
			return
		}
		s.count(f.Kind)
		s.logf("%-9s healed after %v: %v", p.name, time.Since(start).Round(100*time.Millisecond),
			f.Kind)
	}
}

// apply returns when the fault is healed; the end of ctx shortens it.
func (s *storm) apply(ctx context.Context, p part, f fault) error {
	healing, cancel := context.WithTimeout(context.WithoutCancel(ctx), healLimit)
	defer cancel()
	switch f.Kind {
	case killProcess, loseIndex:
		return s.killProcess(ctx, f)
	case freezeProcess:
		return s.freezeProcess(ctx, f)
	case rollProcesses:
		return s.rollProcesses(ctx, f)
	case scale:
		return s.scale(ctx, f)
	case killNode, killNodes:
		return killServers(ctx, healing, f, s.victims(f))
	case pauseNode, pauseNodes:
		return pauseServers(ctx, f, s.victims(f))
	case killBroker:
		return killServers(ctx, healing, f, []*servers.Server{s.broker(p)})
	case pauseBroker:
		return pauseServers(ctx, f, []*servers.Server{s.broker(p)})
	case restartBroker:
		return stopAndStart(ctx, healing, f, s.broker(p))
	case growInput, growOutputs:
		return s.grow(ctx, healing, f)
	default:
		return s.disturbNetwork(ctx, p, f)
	}
}

func (s *storm) killProcess(ctx context.Context, f fault) error {
	s.workers[f.Target].kill()
	s.killed[f.Target].Store(true)
	if f.Kind == loseIndex {
		if err := os.RemoveAll(s.indexes(f.Target)); err != nil {
			return err
		}
	}
	pause.For(ctx, f.For)
	s.workers[f.Target].up()
	return nil
}

// startPatience is how long a fault waits for a process whose start other faults hold up.
const startPatience = 20 * time.Second

func (s *storm) freezeProcess(ctx context.Context, f fault) error {
	w := s.workers[f.Target]
	if !w.waitServing(ctx, startPatience) {
		return errSkipped
	}
	process := w.current()
	if err := process.Pause(); err != nil {
		return err
	}
	pause.For(ctx, f.For)
	return process.Resume()
}

func (s *storm) rollProcesses(ctx context.Context, f fault) error {
	for _, w := range s.workers[:usualProcesses] {
		w.stop()
		pause.For(ctx, f.For)
		w.up()
		w.waitServing(ctx, startPatience)
	}
	return nil
}

// scale stops all but one, then starts all there are, then stops the last.
func (s *storm) scale(ctx context.Context, f fault) error {
	_ = each(s.workers[1:usualProcesses], func(w *worker) error { w.stop(); return nil })
	pause.For(ctx, f.For)
	for _, w := range s.workers[1:] {
		w.up()
	}
	s.workers[usualProcesses].waitServing(ctx, startPatience)
	pause.For(ctx, f.For)
	for _, w := range s.workers[usualProcesses:] {
		w.stop()
	}
	return nil
}

// victims are the nodes of a fault: one, its neighbour too, or all.
func (s *storm) victims(f fault) []*servers.Server {
	all := s.world.nodes()
	several := f.Kind == killNodes || f.Kind == pauseNodes
	switch {
	case several && f.Target == everyone:
		return all
	case several:
		return []*servers.Server{all[f.Target], all[(f.Target+1)%len(all)]}
	default:
		return []*servers.Server{all[max(0, f.Target)]}
	}
}

func killServers(ctx, healing context.Context, f fault, victims []*servers.Server) error {
	_ = each(victims, func(v *servers.Server) error { v.Kill(); return nil })
	pause.For(ctx, f.For)
	return each(victims, func(v *servers.Server) error { return restart(healing, v) })
}

// restart tries again: a node may refuse to start while others start or are paused.
func restart(healing context.Context, v *servers.Server) error {
	for {
		err := v.Restart(healing)
		if err == nil || !pause.For(healing, time.Second) {
			return err
		}
	}
}

func pauseServers(ctx context.Context, f fault, victims []*servers.Server) error {
	if err := each(victims, (*servers.Server).Pause); err != nil {
		return err
	}
	pause.For(ctx, f.For)
	return each(victims, (*servers.Server).Resume)
}

// broker is that of a part.
func (s *storm) broker(p part) *servers.Server {
	if p.name == "output" {
		return s.world.output
	}
	return s.world.kafka
}

func stopAndStart(ctx, healing context.Context, f fault, broker *servers.Server) error {
	if err := broker.Stop(); err != nil {
		return err
	}
	pause.For(ctx, f.For)
	return broker.Restart(healing)
}

func (s *storm) disturbNetwork(ctx context.Context, p part, f fault) error {
	lines := s.world.network.choose(p.name, f.Target)
	if err := each(lines, f.disturb); err != nil {
		return fmt.Errorf("begin: %w", err)
	}
	pause.For(ctx, f.For)
	return each(lines, (*line).restore)
}

// each does the same to all at once.
func each[T any](all []T, do func(T) error) error {
	errs := make([]error, len(all))
	var wg sync.WaitGroup
	for i, one := range all {
		wg.Go(func() { errs[i] = do(one) })
	}
	wg.Wait()
	return errors.Join(errs...)
}
