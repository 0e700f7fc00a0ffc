package command

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/kdedup/kdedup/config"
	"github.com/kdedup/kdedup/connect"
	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/dedup/selftest"
)

// selfTestTimeout is enough for the attempts of a store that answers nothing, and for an expiry
// that never comes.
const selfTestTimeout = 90 * time.Second

// selfTest asks the store for what kdedup relies on, and says what it does.
func selfTest(
	ctx context.Context, c config.Config, log *slog.Logger, say func(string),
) (err error) {
	ctx, cancel := context.WithTimeout(ctx, selfTestTimeout)
	defer cancel()
	group := "kdedup-self-test"
	switch {
	case c.Store.Logs() && len(c.Topics) == 0:
		say("self-test skipped: no topic has a claim log yet")
		return nil
	case c.Store.Logs(): // for the groups of the topics only
		group = c.Topics[0].ScopeGroup
	case c.Store.Type == config.StoreEmbedded:
		scratch, err := scratchBeside(c.Store.Embedded.Path)
		if err != nil {
			say("self-test skipped, for the directory of the store cannot be made from here: " +
				err.Error())
			return nil
		}
		defer os.RemoveAll(scratch)
		c.Store.Embedded.Path = scratch
	}
	servers := connect.NewServers(c, log)
	defer func() { err = errors.Join(err, servers.Close()) }()
	store, err := servers.StoreFor(ctx, func(scope string, _ dedup.ID) bool {
		return strings.HasPrefix(scope, selftest.Scope)
	})
	if err == nil {
		err = connect.WaitReady(ctx, store, dedup.Scope{ConsumerGroup: group})
	}
	if err != nil {
		return fmt.Errorf("self-test: %w", err)
	}
	steps := selftest.Run(ctx, store, group,
		slices.ContainsFunc(c.Topics, config.Topic.Sliding))
	say("self-test of the store " + c.Store.Type + ":\n" + table(steps))
	return verdict(c.Store.Type, steps)
}

// scratchBeside makes a directory on the file system of the embedded store. Its own may be in use,
// or not be there yet: run makes it, with run's user.
func scratchBeside(path string) (string, error) {
	parent, err := filepath.Abs(filepath.Dir(path))
	if err != nil {
		return "", err
	}
	for {
		if _, err = os.Stat(parent); !errors.Is(err, fs.ErrNotExist) ||
			parent == filepath.Dir(parent) {
			break
		}
		parent = filepath.Dir(parent)
	}
	return os.MkdirTemp(parent, ".kdedup-self-test-*")
}

func table(steps []selftest.Step) string {
	var text strings.Builder
	lines := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	for _, s := range steps {
		result := "ok"
		if !s.Passed {
			result = "FAILED"
		}
		fmt.Fprintf(lines, "  %s\t%s\t%s\t%v\n", result, s.Name, s.Got,
			s.Took.Round(10*time.Microsecond))
	}
	_ = lines.Flush() // into memory
	return strings.TrimRight(text.String(), "\n")
}

// verdict is the error of the step that failed, if one did.
func verdict(storeType string, steps []selftest.Step) error {
	last := steps[len(steps)-1]
	if last.Passed {
		return nil
	}
	return fmt.Errorf("self-test: store.%s: %s: expected %q, got %q: %s", storeType, last.Name,
		last.Expected, last.Got, remedy(storeType, last.Name))
}

const otherUser = "; if only the user of kdedup setup lacks a right, pass --skip-self-test"

// remedy is what to do about a step that failed.
func remedy(storeType, step string) string {
	switch {
	case storeType != config.StoreCassandra:
		return "the store must answer as docs/stores.md says, to a user with the rights of " +
			"kdedup run" + otherUser
	case step == selftest.Batch, step == selftest.Repeat:
		return "this server takes no batches of conditional inserts as Cassandra does; set " +
			"store.cassandra.batch_claims to 1"
	case step == selftest.Expiry:
		return "this server keeps expired rows for conditional inserts, so that an ID would be a " +
			"duplicate for ever; use another store"
	case step == selftest.Renewal:
		return "this server does not put off the end of a row by UPDATE … USING TTL … IF; set " +
			"ttl_from of the topics to first"
	}
	return "the server must take INSERT … IF NOT EXISTS and serial reads, from a user with the " +
		"rights of kdedup run; " +
		"docs/stores.md says which compatible servers do" + otherUser
}
