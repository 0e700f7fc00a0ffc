package main

import (
	"encoding/hex"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/kdedup/kdedup/cmd/kdedup/internal/lookup"
	"github.com/kdedup/kdedup/cmd/kdedup/internal/wiring"
	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/dedup/messageid"
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

// with opens the store for the work.
func (f *idFlags) with(cmd *cobra.Command, text string, work func(*lookup.Question) error) error {
	c, log, err := f.load(cmd)
	if err != nil {
		return err
	}
	task := &lookup.Question{Config: c}
	if task.Topic, err = chooseTopic(c.Topics, f.topic); err != nil {
		return err
	}
	extractor, err := wiring.ExtractorOf(task.Topic, nil)
	if err != nil {
		return err
	}
	if task.ID, err = parseID(text, f.hex, extractor); err != nil {
		return usageError{err}
	}
	task.Scope = wiring.ScopeOf(task.Topic, extractor.String())
	if wiring.NotMade(c.Store) {
		return fmt.Errorf("there is no %s: kdedup run makes it; a relative path starts at the "+
			"working directory", wiring.StoreName(c.Store))
	}
	if task.Store, err = wiring.OpenStoreFor(cmd.Context(), c,
		func(_ string, id dedup.ID) bool { return id == task.ID }, log,
	); err != nil {
		return err
	}
	defer task.Store.Close()
	registered, found, err := task.Store.Registered(cmd.Context(), task.Scope)
	if err != nil {
		return err
	}
	if found {
		if err := dedup.CompareScopes(task.Scope, registered); err != nil {
			return err
		}
	}
	if err := wiring.Await(cmd.Context(), task.Store, task.Scope); err != nil {
		return err
	}
	return work(task)
}

// parseID reads an ID of the command line.
func parseID(text string, inHex bool, as *messageid.Extractor) (dedup.ID, error) {
	if !inHex {
		return as.Of([]byte(text)), nil
	}
	id, err := hex.DecodeString(text)
	if err != nil {
		return "", fmt.Errorf("--hex: %w", err)
	}
	return as.Of(id), nil
}
