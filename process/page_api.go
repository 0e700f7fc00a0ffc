package process

import (
	"github.com/kdedup/kdedup/config"
	"github.com/kdedup/kdedup/connect"
	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/internal/api"
	"github.com/kdedup/kdedup/process/server"
)

// apiNow is what the page shows of an API; waiting is nil while it answers, at url.
func apiNow(
	c config.Config, counted api.Totals, url string, waiting *notStarted,
) *server.API {
	now := &server.API{Address: url, Keys: connect.APIKinds(c).Keys, UnderWay: counted.UnderWay,
		Answers: counts(api.Codes(), counted.Answers),
		Refused: counts(api.Reasons(), counted.Refused)}
	if waiting != nil {
		now.Address, now.Waiting = c.API.Listen, waiting.why.Error()
	}
	for _, s := range c.API.Scopes {
		now.Scopes = append(now.Scopes, server.APIScope{Name: s.Name,
			Verdicts: counts(apiVerdicts, counted.Verdicts[s.Name]),
			Begins:   counts(api.Outcomes(), counted.Outcomes[s.Name]),
			InHand:   counted.InHand[s.Name]})
	}
	for _, caller := range c.API.Callers {
		now.Callers = append(now.Callers, server.APICaller{Name: caller.Name,
			Proof: proofOf(caller), Scopes: caller.Scopes, Requests: counted.Callers[caller.Name]})
	}
	return now
}

// apiVerdicts are those that a caller can hear.
var apiVerdicts = []dedup.Verdict{dedup.VerdictFirst, dedup.VerdictMine, dedup.VerdictReplay,
	dedup.VerdictDuplicate, dedup.VerdictConflict}

// proofOf says how a caller is known.
func proofOf(c config.APICaller) string {
	switch {
	case c.Token.Reveal() == "":
		return "certificate"
	case c.Certificate == "":
		return "token"
	}
	return "both"
}
