package command

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/spf13/cobra"

	"github.com/kdedup/kdedup/command/proposal"
	"github.com/kdedup/kdedup/config"
	"github.com/kdedup/kdedup/connect"
	"github.com/kdedup/kdedup/process"
)

// loadOrDraft reads the file, or makes a configuration of the flags where they name brokers.
func (f *reportFlags) loadOrDraft(cmd *cobra.Command) (config.Config, *slog.Logger, error) {
	if len(f.brokers) > 0 {
		return f.withoutFile(cmd)
	}
	c, log, err := f.load(cmd)
	if err != nil || !f.id.given() {
		return c, log, err
	}
	t, err := chooseTopic(c.Topics, f.topic)
	if err != nil {
		return c, log, err
	}
	t.MessageID = f.id.MessageID
	if c.Topics = []config.Topic{t}; c.Validate() != nil {
		err = usageError{fmt.Errorf("--id: %w", c.Validate())}
	}
	return c, log, err
}

// withoutFile is what kdedup init would write.
func (f *reportFlags) withoutFile(cmd *cobra.Command) (config.Config, *slog.Logger, error) {
	if f.path != "" {
		return config.Config{}, nil, usageError{errors.New(
			"-c and --brokers exclude each other: the file names the brokers")}
	}
	if f.topic == "" {
		return config.Config{}, nil, usageError{errors.New(
			"--topic is required with --brokers: there is no file that names it")}
	}
	p := plan{input: f.topic, output: f.topic + ".clean", group: f.topic + "-dedup",
		ttl: config.DefaultTopic().TTL, id: f.id.MessageID}
	looking := !f.id.given()
	if looking {
		p.id = config.MessageID{From: config.FromKey} // until something is seen
	}
	c, err := f.draft(placeholder)
	if err == nil {
		registry := ""
		if r, is := f.registryOf(c); is {
			registry = registrySection(r)
		}
		c, err = f.draft(registry + p.topics())
	}
	if err != nil {
		return c, nil, err
	}
	if f.logLevel != "" {
		c.Log.Level = f.logLevel
	}
	if f.instance != "" {
		c.Instance = f.instance
	}
	log, _ := process.NewLogger(c.Log, cmd.ErrOrStderr(), nil)
	warnOfUnencrypted(c, log)
	if looking {
		c.Topics[0], err = f.proposed(cmd, &c, log)
	}
	return c, log, err
}

// proposed is the entry with the ID that the newest records show.
func (f *reportFlags) proposed(
	cmd *cobra.Command, c *config.Config, log *slog.Logger,
) (t config.Topic, err error) {
	t = c.Topics[0]
	servers := connect.NewServers(*c, log)
	defer func() { err = errors.Join(err, servers.Close()) }()
	l, _, err := connectToLook(cmd.Context(), servers, "report", log)
	if err != nil {
		return t, err
	}
	if err := l.wantTopic(cmd.Context(), t.Input); err != nil {
		return t, err
	}
	sample, err := proposal.Read(cmd.Context(), l.client, l.options, t.Input,
		proposal.DefaultLimits)
	if err != nil {
		return t, err
	}
	var p plan
	r, is := f.registryOf(*c)
	if _, serialized := sample.Serialized(); serialized && is {
		if p.schemas, err = f.askSchemas(cmd.Context(), r, sample, log); err != nil {
			return t, usageError{fmt.Errorf("--registry: %w", err)}
		}
		p.schemas.close()
		c.SchemaRegistry, sample.Schemas = p.schemas.checked, p.schemas.Schemas
	}
	j := proposal.Judge(sample, time.Now(), nil)
	if len(j.Choices) == 0 {
		return t, noID(usageError{errors.New("--id")}, sample, j)
	}
	first := j.Choices[0]
	p.take(first, j)
	t.MessageID, t.Fingerprint = p.id, p.topic().Fingerprint
	if j.Tombstones > 0 && first.OfValue() {
		t.OnTombstone = config.ActionForward
	}
	fmt.Fprintf(cmd.ErrOrStderr(),
		"message ID: %s; of the newest records, %s. Name another one by --id.\n",
		first, first.Seen())
	if first.Doubt != "" {
		fmt.Fprintln(cmd.ErrOrStderr(), first.Doubt)
	}
	return t, nil
}
