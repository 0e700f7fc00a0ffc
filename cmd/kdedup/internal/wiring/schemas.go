package wiring

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/kdedup/kdedup/config"
	"github.com/kdedup/kdedup/dedup/messageid"
	"github.com/kdedup/kdedup/internal/registry"
)

// Schemas is the client of the schema registry. It asks nobody before a record needs it.
func Schemas(c config.Config, log *slog.Logger) (*registry.Client, error) {
	r := c.SchemaRegistry
	current, err := Encryption("schema_registry.tls", r.TLS, log)
	if err != nil {
		return nil, err
	}
	return registry.New(registry.Options{URLs: r.URLs, Username: r.Username,
		Password: r.Password.Reveal(), Token: r.Token.Reveal(), TLS: current, Timeout: r.Timeout})
}

// CheckSchemas finds out for an entry whether the newest schemas of its subjects have the fields in
// which it looks for message IDs.
func (e *Entry) CheckSchemas(
	ctx context.Context, schemas *registry.Client, log *slog.Logger,
) error {
	return checkPlace(ctx, schemas, e.Input, "message_id", e.MessageID, log)
}

func checkPlace(
	ctx context.Context, schemas *registry.Client, input, path string, m config.MessageID,
	log *slog.Logger,
) error {
	var problems []error
	for i, part := range m.Parts {
		problems = append(problems, checkPlace(ctx, schemas, input,
			fmt.Sprintf("%s.parts[%d]", path, i), part, log))
	}
	if m.From != config.FromAvro && m.From != config.FromProtobuf &&
		m.From != config.FromJSONSchema {
		return errors.Join(problems...)
	}
	subject := SubjectOf(m, input)
	newest, err := schemas.Newest(ctx, subject)
	switch {
	case errors.Is(err, registry.ErrNoSubject) && m.Subject == "":
		log.Warn("there is no subject to compare message_id with: name it by message_id.subject",
			"topic", input, "subject", subject)
		err = nil
	case err == nil:
		err = messageid.CheckSchema(sourceOf(m, nil), newest)
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
