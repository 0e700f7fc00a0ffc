package kafka

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"

	"github.com/kdedup/kdedup/config"
)

// mechanism is how a client logs in; nil without one.
func mechanism(ctx context.Context, s config.SASL, log *slog.Logger) (sasl.Mechanism, error) {
	switch s.Mechanism {
	case config.SASLPlain:
		return plain.Auth{User: s.Username, Pass: s.Password.Reveal()}.AsMechanism(), nil
	case config.SASLScram256:
		return scram.Auth{User: s.Username, Pass: s.Password.Reveal()}.AsSha256Mechanism(), nil
	case config.SASLScram512:
		return scram.Auth{User: s.Username, Pass: s.Password.Reveal()}.AsSha512Mechanism(), nil
	case config.SASLOAuthBearer:
		return bearer(s.OAuth, log)
	case config.SASLAWS:
		return managedStreaming(ctx, s.AWS)
	case "":
		return nil, nil
	}
	return nil, fmt.Errorf("kafka.sasl.mechanism: %q is unknown", s.Mechanism)
}
