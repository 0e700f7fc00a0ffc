package main

import (
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/config"
	"github.com/kdedup/kdedup/dedup"
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

// idTask is the work on one ID, of a command or of the status page.
type idTask struct {
	config config.Config
	topic  config.Topic
	scope  dedup.Scope
	id     dedup.ID
	store  dedup.Store
	admin  *kgo.Client // nil: one is made when it is needed
}

// with opens the store for the work.
func (f *idFlags) with(cmd *cobra.Command, text string, work func(*idTask) error) error {
	c, log, err := f.load(cmd)
	if err != nil {
		return err
	}
	task := &idTask{config: c}
	if task.topic, err = chooseTopic(c.Topics, f.topic); err != nil {
		return err
	}
	if task.id, err = f.parse(text); err != nil {
		return err
	}
	extractor, err := dedup.NewExtractor(sourceOf(task.topic.MessageID))
	if err != nil {
		return err
	}
	task.scope = scopeOf(task.topic, extractor.String())
	if notMade(c.Store) {
		return fmt.Errorf("there is no %s: kdedup run makes it; a relative path starts at the working directory", storeName(c.Store))
	}
	if task.store, err = openStore(cmd.Context(), c.Store, prometheus.NewRegistry(), log); err != nil {
		return err
	}
	defer task.store.Close()
	registered, found, err := task.store.Registered(cmd.Context(), task.scope)
	if err != nil {
		return err
	}
	if found {
		if err := dedup.CompareScopes(task.scope, registered); err != nil {
			return err
		}
	}
	return work(task)
}

// chooseTopic finds the entry with this input; the only one needs no name.
func chooseTopic(topics []config.Topic, input string) (config.Topic, error) {
	if input == "" && len(topics) == 1 {
		return topics[0], nil
	}
	at := slices.IndexFunc(topics, func(t config.Topic) bool { return t.Input == input })
	if at < 0 {
		var inputs []string
		for _, t := range topics {
			inputs = append(inputs, t.Input)
		}
		return config.Topic{}, usageError{fmt.Errorf("--topic must be one of %s, got %q", strings.Join(inputs, ", "), input)}
	}
	return topics[at], nil
}

func (f *idFlags) parse(text string) (dedup.ID, error) {
	if !f.hex {
		return dedup.NewID([]byte(text)), nil
	}
	id, err := hex.DecodeString(text)
	if err != nil {
		return "", usageError{fmt.Errorf("--hex: %w", err)}
	}
	return dedup.NewID(id), nil
}
