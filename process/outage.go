package process

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/kdedup/kdedup/config"
	"github.com/kdedup/kdedup/dedup/cassandra"
	"github.com/kdedup/kdedup/dedup/embedded"
	"github.com/kdedup/kdedup/dedup/postgres"
	"github.com/kdedup/kdedup/dedup/redis"
	"github.com/kdedup/kdedup/internal/pause"
	"github.com/kdedup/kdedup/process/server"
)

// A start waits for servers that do not answer: a sidecar that ends would keep its application from
// starting, and an orchestrator would restart it in ever longer pauses. What no waiting fixes (a
// login that is refused, a topic that is missing, claims that would mean something else) ends it,
// unless the API has its store: it needs none of the topics.

const (
	firstStartPause = 500 * time.Millisecond
	longStartPause  = 15 * time.Second

	// usedPatience is how long a start waits for files that another process has open: a look-up has
	// them for a moment, and a process that ends until it is done.
	usedPatience = 10 * time.Second
)

// unreachable reports whether an error of a start says that a server cannot be reached, or does not
// serve now.
func unreachable(err error) bool {
	for _, temporary := range []error{
		context.DeadlineExceeded, io.ErrUnexpectedEOF,
		// of a proxy whose broker is down, for example; if it is of a broker that wants TLS, the
		// error says so
		io.EOF,
		syscall.ECONNREFUSED, syscall.ECONNRESET, syscall.EHOSTUNREACH, syscall.ENETUNREACH,
		syscall.EPIPE,
	} {
		if errors.Is(err, temporary) {
			return true
		}
	}
	var (
		name *net.DNSError
		slow net.Error
	)
	return errors.As(err, &name) || errors.As(err, &slow) && slow.Timeout() || serverAnswers(err) ||
		cassandra.Unreachable(err) || redis.Unreachable(err) || postgres.Unreachable(err)
}

// serverAnswers are those of brokers that do not serve now.
func serverAnswers(err error) bool {
	return kerr.IsRetriable(err) && !errors.Is(err, kerr.UnknownTopicOrPartition)
}

// notStarted is why a process has not begun its work.
type notStarted struct{ why error }

// whenRunning returns the process with its servers, or why it has none yet.
func (p *Process) whenRunning() (*running, error) {
	if r := p.running.Load(); r != nil {
		return r, nil
	}
	return nil, fmt.Errorf("kdedup has not started yet: %w", p.starting.Load().why)
}

func (n *notStarted) check(context.Context) error { return n.why }

// checks is what /readyz shows meanwhile.
func (n *notStarted) checks() []server.Check {
	return []server.Check{{Name: "start", Func: n.check}}
}

// openPatiently connects everything, again and again while a server does not answer. It returns nil
// without having opened anything when ctx ends: every client has an error of its own for what was
// under way.
func (p *Process) openPatiently(ctx context.Context, c config.Config) error {
	began := time.Now()
	for wait := firstStartPause; ctx.Err() == nil; wait = min(2*wait, longStartPause) {
		err := p.open(ctx, c)
		if err == nil {
			if wait > firstStartPause {
				p.log.Info("all servers answer", "after", time.Since(began).Round(time.Millisecond))
			}
			return nil
		}
		if ctx.Err() != nil {
			break
		}
		reason := "a server does not answer"
		if errors.Is(err, embedded.ErrUsed) && time.Since(began) < usedPatience {
			reason = "another process has the store open"
		} else if waitsForSetup(err) {
			reason = "the claim log is not set up"
		} else if !unreachable(err) {
			if p.beside.store.Load() == nil {
				return err
			}
			reason = "the pipelines cannot begin, the api goes on"
		}
		p.starting.Store(&notStarted{err})
		p.log.Warn(reason+": nothing is forwarded yet, trying again", "error", err, "pause", wait)
		pause.For(ctx, wait)
	}
	return nil
}
