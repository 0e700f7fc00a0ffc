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

// mechanism is how a client logs in; nil without one. The section is where its settings are.
func mechanism(
	ctx context.Context, section string, s config.SASL, log *slog.Logger,
) (sasl.Mechanism, error) {
	switch s.Mechanism {
	case config.SASLPlain:
		return plain.Auth{User: s.Username, Pass: s.Password.Reveal()}.AsMechanism(), nil
	case config.SASLScram256:
		return scram.Auth{User: s.Username, Pass: s.Password.Reveal()}.AsSha256Mechanism(), nil
	case config.SASLScram512:
		return scram.Auth{User: s.Username, Pass: s.Password.Reveal()}.AsSha512Mechanism(), nil
	case config.SASLOAuthBearer:
		return bearer(section+".oauth", s.OAuth, log)
	case config.SASLAWS:
		return managedStreaming(ctx, section+".aws", s.AWS)
	case "":
		return nil, nil
	}
	return nil, fmt.Errorf("%s.mechanism: %q is unknown", section, s.Mechanism)
}
