package command

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"regexp"
	"slices"

	"github.com/spf13/cobra"

	"github.com/kdedup/kdedup/config"
	"github.com/kdedup/kdedup/connect"
	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/dedup/claimlog"
	"github.com/kdedup/kdedup/dedup/messageid"
	"github.com/kdedup/kdedup/process/lookup"
)

func newID() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "id",
		Short: "Ask and change what the store knows about one message ID",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newIDLookup(), newIDRelease(), newIDClaim())
	return cmd
}

// idFlags say which ID of which topic is meant.
type idFlags struct {
	configFlags
	topic string
	hex   bool
}

func (f *idFlags) add(cmd *cobra.Command) {
	f.configFlags.add(cmd)
	f.addTopic(cmd, &f.topic, "input `TOPIC` (needed if the configuration has several)")
	cmd.Flags().BoolVar(&f.hex, "hex", false, "ID is written in hexadecimal digits")
}

// asked is what the command line asks about.
type asked struct {
	config    config.Config
	log       *slog.Logger
	topic     config.Topic
	extractor *messageid.Extractor
	ids       []dedup.ID // that the text may stand for
	says      io.Writer  // hears how far a claim log is read
}

func (f *idFlags) asked(cmd *cobra.Command, text string) (q asked, err error) {
	q.says = cmd.ErrOrStderr()
	if q.config, q.log, err = f.load(cmd); err != nil {
		return q, err
	}
	if q.topic, err = chooseTopic(q.config.Topics, f.topic); err != nil {
		return q, err
	}
	if q.extractor, err = connect.ExtractorOf(q.topic, nil); err != nil {
		return q, err
	}
	if q.ids, err = parseID(text, f.hex, q.extractor); err != nil {
		return q, usageError{err}
	}
	return q, nil
}

// with opens the store for the work.
func (q asked) with(ctx context.Context, work func(*lookup.Question) error) (err error) {
	servers := connect.NewServers(q.config, q.log)
	defer func() { err = errors.Join(err, servers.Close()) }()
	// brokers are asked what became of the owner; where they are away, the answer says so
	brokers := connect.NewServers(q.config, slog.New(slog.DiscardHandler))
	defer func() { err = errors.Join(err, brokers.Close()) }()
	task := &lookup.Question{Topic: q.topic, Clusters: brokers.Clusters}
	e := connect.Entry{Topic: q.topic}
	line := newProgress(q.says)
	task.Store, err = openClaims(ctx, q.config, servers, &e,
		func(_ string, id dedup.ID) bool { return slices.Contains(q.ids, id) }, line.show)
	line.end()
	if err != nil {
		return err
	}
	task.Scope = e.ClaimScope()
	if task.ID, err = meant(ctx, task.Store, task.Scope, q.ids); err != nil {
		return err
	}
	return work(task)
}

// openClaims opens the store to look at claims of an entry, and finds out how its scope makes IDs.
// Of a claim log it keeps only some, in memory, or all where only is nil, in the files that the
// configuration names.
func openClaims(
	ctx context.Context, c config.Config, servers *connect.Servers, e *connect.Entry,
	only claimlog.Only, show func(done, total int64),
) (store dedup.Store, err error) {
	if err := connect.CheckMade(c.Store); err != nil {
		return nil, err
	}
	if only == nil {
		store, err = servers.Store(ctx)
	} else {
		store, err = servers.StoreFor(ctx, only)
	}
	if err != nil {
		return nil, err
	}
	if err = e.Compare(ctx, store); err == nil {
		err = connect.WaitReadyShowing(ctx, store, e.ClaimScope(), show)
	}
	return store, err
}

// storedLongID is how a long ID is spelled that is known only as it is stored: a prefix, and its
// SHA-256.
var storedLongID = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)

// parseID reads an ID of the command line. A text may be an ID, or how a longer one is stored.
func parseID(text string, inHex bool, as *messageid.Extractor) ([]dedup.ID, error) {
	if !inHex {
		ids := []dedup.ID{as.Of([]byte(text))}
		if storedLongID.MatchString(text) {
			sum, err := hex.DecodeString(text[len("sha256:"):])
			if err != nil {
				return nil, err
			}
			ids = append(ids, as.Of(append([]byte("sha256:"), sum...)))
		}
		return ids, nil
	}
	id, err := hex.DecodeString(text)
	if err != nil {
		return nil, fmt.Errorf("--hex: the ID is not an even number of hexadecimal digits: %w", err)
	}
	return []dedup.ID{as.Of(id)}, nil
}

// meant is the first of the IDs that is claimed, or else the first.
func meant(
	ctx context.Context, store dedup.Store, scope dedup.Scope, ids []dedup.ID,
) (dedup.ID, error) {
	if len(ids) > 1 {
		for _, id := range ids {
			answer, err := store.Lookup(ctx, scope, id)
			if err != nil || answer.Outcome != dedup.Undecided {
				return id, err
			}
		}
	}
	return ids[0], nil
}
