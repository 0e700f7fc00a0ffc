package wiring

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"

	"github.com/kdedup/kdedup/config"
	"github.com/kdedup/kdedup/dedup/messageid"
	"github.com/kdedup/kdedup/internal/kafka"
	"github.com/kdedup/kdedup/internal/registry"
)

// Schemas is the client of the schema registry. It asks nobody before a record needs it.
func Schemas(c config.Config, log *slog.Logger) (*registry.Client, error) {
	r := c.SchemaRegistry
	current, err := Encryption("schema_registry.tls", r.TLS, log)
	if err != nil {
		return nil, err
	}
	o := registry.Options{URLs: r.URLs, Username: r.Username, Password: r.Password.Reveal(),
		Token: r.Token.Reveal(), Headers: make(http.Header), TLS: current, Timeout: r.Timeout}
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

// CheckSchemas finds out for an entry whether the newest schemas of its subjects have the fields in
// which it looks for message IDs, for a condition and for what counts. A field that does not count
// may be missing: presets name those of several versions.
func (e *Entry) CheckSchemas(
	ctx context.Context, schemas *registry.Client, log *slog.Logger,
) error {
	check := checkSchemas{schemas, e.Input, log, messageid.CheckSchema}
	problems := []error{check.place(ctx, "message_id", e.MessageID)}
	check.fits = messageid.CheckField
	fields := func(path, format, part string, texts ...string) {
		for _, text := range texts {
			problems = append(problems, check.place(ctx, path, config.MessageID{From: format,
				Path: text, Part: part, Subject: subjectOfPart(e.MessageID, part)}))
		}
	}
	fields("only_if", e.OnlyIf.From, e.OnlyIf.Part, e.OnlyIf.Path)
	fields("message_id.only", e.MessageID.Format, config.PartValue, e.MessageID.Only...)
	fields("fingerprint.only", e.ContentFormat(), config.PartValue, e.Fingerprint.Only...)
	return errors.Join(problems...)
}

// subjectOfPart is the subject that somebody named, if it is that of the part.
func subjectOfPart(m config.MessageID, part string) string {
	if (m.Part == config.PartKey) == (part == config.PartKey) {
		return m.Subject
	}
	return ""
}

type checkSchemas struct {
	schemas *registry.Client
	input   string
	log     *slog.Logger
	fits    func(messageid.Source, messageid.Schema) error
}

func (c checkSchemas) place(ctx context.Context, path string, m config.MessageID) error {
	var problems []error
	for i, part := range m.Parts {
		problems = append(problems, c.place(ctx, fmt.Sprintf("%s.parts[%d]", path, i), part))
	}
	if m.From != config.FromAvro && m.From != config.FromProtobuf &&
		m.From != config.FromJSONSchema {
		return errors.Join(problems...)
	}
	subject := SubjectOf(m, c.input)
	newest, err := c.schemas.Newest(ctx, subject)
	switch {
	case errors.Is(err, registry.ErrNoSubject) && m.Subject == "":
		c.log.Warn("there is no subject to compare message_id with: name it by message_id.subject",
			"topic", c.input, "subject", subject)
		err = nil
	case err == nil:
		err = c.fits(sourceOf(m, nil), newest)
	}
	if err != nil {
		problems = append(problems, fmt.Errorf("%s: subject %s: %w", path, subject, err))
	}
	return errors.Join(problems...)
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
