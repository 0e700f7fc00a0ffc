package process

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"reflect"
	"time"

	"github.com/kdedup/kdedup/config"
)

// WatchEvery is the pause between two looks at the file. A change counts when two looks saw it: a
// file that is just being written, cut off in the middle, may be a good one with fewer topics.
const WatchEvery = 5 * time.Second

// retryEvery is the pause after which a file is tried again that was refused because of the
// servers.
const retryEvery = 30 * time.Second

// ConfigFile is the file that a process follows. It is compared by what it says, not by how it is
// stored: links that are swapped (Kubernetes), network file systems and the files of secrets need
// no care of their own.
type ConfigFile struct {
	read    func() (config.Config, error)
	asked   <-chan os.Signal
	every   time.Duration
	seen    reading // at the last look
	known   reading // that is in force, or was refused
	retry   bool    // known was refused because of the servers
	triedAt time.Time
}

// reading is what the file said, or why it could not be read.
type reading struct {
	config config.Config
	err    string
}

// NewConfigFile follows a file that reads as what is in force. A signal on asked reads it at once.
func NewConfigFile(
	read func() (config.Config, error), asked <-chan os.Signal, every time.Duration,
	inForce config.Config,
) *ConfigFile {
	return &ConfigFile{read: read, asked: asked, every: every, seen: reading{config: inForce},
		known: reading{config: inForce}}
}

func (r reading) equal(other reading) bool { return reflect.DeepEqual(r, other) }

// look reads the file.
func (f *ConfigFile) look() reading {
	c, err := f.read()
	if err != nil {
		return reading{err: err.Error()}
	}
	return reading{config: c}
}

// changed reads the file and reports whether it has something to try.
func (f *ConfigFile) changed(now time.Time) (reading, bool) {
	before := f.seen
	f.seen = f.look()
	if !f.seen.equal(before) {
		return f.seen, false
	}
	again := f.retry && now.Sub(f.triedAt) >= retryEvery
	return f.seen, again || !f.seen.equal(f.known)
}

// follow applies what the file says, and what topics there are for its patterns, until ctx ends.
func (p *running) follow(ctx context.Context, giveUp context.CancelFunc, f *ConfigFile) {
	tick := time.NewTicker(f.every)
	defer tick.Stop()
	look := time.NewTimer(nextLook(p.lookEvery))
	defer look.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-look.C:
			if p.active.Load().file.HasPatterns() || p.incomplete() {
				p.rescan(ctx, giveUp)
			}
			look.Reset(nextLook(p.lookEvery))
		case <-f.asked:
			p.try(ctx, giveUp, f, f.look())
		case now := <-tick.C:
			if !p.Config().Reload.Watch {
				continue
			}
			if read, ok := f.changed(now); ok {
				p.try(ctx, giveUp, f, read)
			}
		}
	}
}

// try applies what was read, or says why not.
func (p *running) try(ctx context.Context, giveUp context.CancelFunc, f *ConfigFile, read reading) {
	err := errors.New(read.err)
	if read.err == "" {
		err = p.reload(ctx, read.config, giveUp)
	}
	f.known, f.triedAt = read, time.Now()
	f.retry = errors.As(err, new(unready))
	if err == nil || ctx.Err() != nil {
		return // in force; or the process ends, and the servers' answers are no longer awaited
	}
	p.families.config.Refused()
	log := slog.New(p.events.everyLine())
	if f.retry && p.Config().Reload.Watch {
		log = log.With("tried_again_in", retryEvery)
	}
	log.Error("configuration refused, the one before runs on", "error", err)
}
