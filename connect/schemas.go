package connect

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"

	"github.com/kdedup/kdedup/config"
	"github.com/kdedup/kdedup/connect/kafka"
	"github.com/kdedup/kdedup/dedup/messageid"
	"github.com/kdedup/kdedup/dedup/messageid/registry"
)

// Schemas is the client of the schema registry. It asks nobody before a record needs it.
func Schemas(c config.Config, log *slog.Logger) (*registry.Client, error) {
	r := c.SchemaRegistry
	current, err := Encryption("schema_registry.tls", r.TLS, log)
	if err != nil {
		return nil, err
	}
	o := registry.Options{URLs: r.URLs, Username: r.Username, Password: r.Password.Reveal(),
		Token: r.Token.Reveal(), Headers: make(http.Header), TLS: current, Timeout: r.Timeout,
		Type: r.Type, Framing: framingOf(r), Schemas: r.Schemas,
		Glue: registry.GlueOptions{Load: kafka.LoadAWS, Region: r.Region, Registry: r.RegistryName}}
	for _, header := range r.Headers {
		name, value, _ := strings.Cut(header, "=")
		o.Headers.Set(name, value)
	}
	if r.OAuth.TokenURL != "" {
		o.Tokens, err = kafka.NewTokens("schema_registry.oauth", r.OAuth.Grant(), log)
		if err != nil {
			return nil, err
		}
	}
	return registry.New(o)
}

// framingOf is how records name their schemas.
func framingOf(r config.SchemaRegistry) messageid.Framing {
	f := messageid.Framing{In: r.IDIn, Long: r.IDBytes == 8}
	switch {
	case r.Type == config.RegistryGlue:
		f.Of = messageid.FramingGlue
	case r.Type == config.RegistryAzure:
		f.Of = messageid.FramingAzure
	case r.UseID == config.UseGlobalID:
		f.Numbers = messageid.RefGlobalID
	case r.Type == config.RegistryApicurio:
		f.Numbers = messageid.RefContentID
	}
	return f
}

// CheckSchemas finds out for an entry whether the newest schemas of its subjects have the fields in
// which it looks for message IDs, for a condition and for what counts. A field that does not count
// may be missing: presets name those of several versions.
func (e *Entry) CheckSchemas(
	ctx context.Context, schemas *registry.Client, log *slog.Logger,
) error {
	c := newestSchemas{schemas, e.Input, e.Schema, log}
	return errors.Join(c.places(ctx, "message_id", e.MessageID),
		c.fields(ctx, "only_if", e.OnlyIf.From, e.OnlyIf.Part, e.MessageID, e.OnlyIf.Path),
		c.fields(ctx, "fingerprint.only", e.ContentFormat(), config.PartValue, e.MessageID,
			e.Fingerprint.Only...))
}

// newestSchemas are those of the subjects of an input.
type newestSchemas struct {
	schemas *registry.Client
	input   string
	named   string // the schema of all values; empty: records name theirs
	log     *slog.Logger
}

// places compares with them where a message ID and its parts stand.
func (c newestSchemas) places(ctx context.Context, path string, m config.MessageID) error {
	problems := []error{c.compare(ctx, path, m, messageid.CheckSchema),
		c.fields(ctx, path+".only", m.Format, config.PartValue, m, m.Only...)}
	for i, part := range m.Parts {
		problems = append(problems, c.places(ctx, fmt.Sprintf("%s.parts[%d]", path, i), part))
	}
	return errors.Join(problems...)
}

// fields compares with them what need not be fit for an ID. The subject that id names holds for
// them, if it is that of the same part.
func (c newestSchemas) fields(
	ctx context.Context, path, format, part string, id config.MessageID, texts ...string,
) error {
	m := config.MessageID{From: format, Part: part}
	if (id.Part == config.PartKey) == (part == config.PartKey) {
		m.Subject = id.Subject
	}
	var problems []error
	for _, m.Path = range texts {
		problems = append(problems, c.compare(ctx, path, m, messageid.CheckField))
	}
	return errors.Join(problems...)
}

func (c newestSchemas) compare(
	ctx context.Context, path string, m config.MessageID,
	fits func(messageid.Source, messageid.Schema) error,
) error {
	if m.From != config.FromAvro && m.From != config.FromProtobuf &&
		m.From != config.FromJSONSchema {
		return nil
	}
	if c.named != "" && m.Part != config.PartKey {
		s, err := c.schemas.SchemaNamed(ctx, c.named)
		if err == nil {
			err = fits(sourceOf(m, nil), s)
		}
		if err != nil {
			return fmt.Errorf("%s: schema %s: %w", path, c.named, err)
		}
		return nil
	}
	if c.schemas.Asks() == registry.Files {
		return c.compareFiles(path, m, fits)
	}
	subject := SubjectOf(m, c.input)
	if c.schemas.Asks() == registry.Glue && m.Subject == "" {
		subject = c.input
	}
	var problem error // of the newest
	for s, err := range c.schemas.Versions(ctx, subject) {
		switch {
		case errors.Is(err, registry.ErrNoSubject) && m.Subject == "":
			c.log.Warn("there is no subject to compare message_id with: name it by "+
				"message_id.subject", "topic", c.input, "subject", subject)
			return nil
		case err == nil:
			if err = fits(sourceOf(m, nil), s); err == nil {
				return nil
			}
		}
		problem = cmp.Or(problem, fmt.Errorf("%s: subject %s: %w", path, subject, err))
		if m.Subject != "" { // named for this part alone
			break
		}
	}
	return problem
}

// compareFiles wants one schema of the files that fits: which of them are of the topic, only its
// records say.
func (c newestSchemas) compareFiles(
	path string, m config.MessageID, fits func(messageid.Source, messageid.Schema) error,
) error {
	var last error
	for _, s := range c.schemas.Files() {
		if s.Type != m.From {
			continue
		}
		if last = fits(sourceOf(m, nil), s); last == nil {
			return nil
		}
	}
	if last == nil {
		last = fmt.Errorf("schema_registry.schemas has none of type %s", m.From)
	}
	return fmt.Errorf("%s: no file of schema_registry.schemas: %w", path, last)
}

// SubjectOf is the one whose schemas records of a topic have.
func SubjectOf(m config.MessageID, input string) string {
	switch {
	case m.Subject != "":
		return m.Subject
	case m.Part == config.PartKey:
		return input + "-key"
	}
	return input + "-value"
}
