package config

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/kdedup/kdedup/internal/jsonpath"
)

// simplePlaces are those that have no parts.
var simplePlaces = []string{FromHeader, FromKey, FromJSON, FromValueHash}

func (m MessageID) check(p *problems, path string) {
	m.checkPlace(p, path, append(slices.Clone(simplePlaces), FromComposite, FromFirstOf))
}

func (m MessageID) checkPlace(p *problems, path string, allowed []string) {
	if !p.require(path+".from", m.From) || !oneOf(p, path+".from", m.From, allowed...) {
		return
	}
	m.checkOperand(p, path, "name", m.Name != "", FromHeader)
	m.checkOperand(p, path, "path", m.Path != "", FromJSON)
	m.checkOperand(p, path, "parts", len(m.Parts) > 0, FromComposite, FromFirstOf)
	if m.checkOption(p, path, "occurrence", m.Occurrence != "", FromHeader) {
		oneOf(p, path+".occurrence", m.Occurrence, OccurrenceFirst, OccurrenceLast)
	}
	if m.checkOption(p, path, "part", m.Part != "", FromJSON) {
		oneOf(p, path+".part", m.Part, PartValue, PartKey)
	}
	m.checkNormalize(p, path+".normalize")
	ignores := m.checkOption(p, path, "ignore", len(m.Ignore) > 0, FromValueHash)
	if m.checkOption(p, path, "only", len(m.Only) > 0, FromValueHash) || ignores {
		checkFields(p, path, m.Ignore, m.Only)
	}
	if m.From == FromJSON {
		checkJSONPath(p, path+".path", m.Path)
	}
	switch m.From {
	case FromComposite:
		m.checkParts(p, path+".parts", simplePlaces)
	case FromFirstOf:
		m.checkParts(p, path+".parts", append(slices.Clone(simplePlaces), FromComposite))
	}
}

// checkOperand sees to it that a setting is there exactly with the kinds of place it is for.
func (m MessageID) checkOperand(p *problems, path, key string, set bool, from ...string) {
	if slices.Contains(from, m.From) && !set {
		p.add(path+"."+key, "", "is required with from: %s", m.From)
	}
	m.checkOption(p, path, key, set, from...)
}

// checkOption refuses a setting of other kinds of place. It reports whether there is one to check.
func (m MessageID) checkOption(p *problems, path, key string, set bool, from ...string) bool {
	fits := slices.Contains(from, m.From)
	if set && !fits {
		p.add(path+"."+key, "", "belongs to from: %s, not to from: %s",
			strings.Join(from, " and "), m.From)
	}
	return set && fits
}

// maxNormalize bounds how much work an ID is.
const maxNormalize = 8

func (m MessageID) checkNormalize(p *problems, path string) {
	switch {
	case len(m.Normalize) == 0:
		return
	case len(m.Parts) > 0:
		p.add(path, "set it in the parts", "belongs to places without parts, not to from: %s",
			m.From)
	case m.From == FromValueHash:
		p.add(path, "", "belongs to from: header, key and json, not to from: %s", m.From)
	case len(m.Normalize) > maxNormalize:
		p.add(path, "", "must be at most %d steps, got %d", maxNormalize, len(m.Normalize))
	}
	for i, step := range m.Normalize {
		oneOf(p, fmt.Sprintf("%s[%d]", path, i), step, NormalizeTrim, NormalizeUnquote,
			NormalizeLower, NormalizeUUID)
	}
}

func (m MessageID) checkParts(p *problems, path string, allowed []string) {
	if len(m.Parts) < 2 {
		p.add(path, "", "must be at least 2, got %d", len(m.Parts))
	}
	for i, part := range m.Parts {
		part.checkPlace(p, fmt.Sprintf("%s[%d]", path, i), allowed)
	}
}

func checkJSONPath(p *problems, path, value string) {
	wrong := (*jsonpath.Error)(nil)
	if _, err := jsonpath.Parse(value); errors.As(err, &wrong) {
		p.add(path, wrong.Remedy, "%s: %q", wrong.Problem, value)
	}
}
