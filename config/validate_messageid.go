package config

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/kdedup/kdedup/internal/jsonpath"
)

// simplePlaces are those that have no parts.
var simplePlaces = []string{FromHeader, FromKey, FromJSON, FromAvro, FromProtobuf, FromJSONSchema,
	FromDebezium, FromMaxwell, FromCanal, FromTiCDC, FromCockroachDB, FromMongoDB, FromDMS,
	FromValueHash}

// changePlaces have what identifies a change, and no bytes of an ID.
var changePlaces = []string{FromDebezium, FromMaxwell, FromCanal, FromTiCDC, FromCockroachDB,
	FromMongoDB, FromDMS}

// framedPlaces are those behind the ID of a schema.
var framedPlaces = []string{FromAvro, FromProtobuf, FromJSONSchema}

// minHMACKey is that of dedup/messageid.
const minHMACKey = 16

func (m MessageID) check(p *problems, path string) {
	if n := len(m.HMACKey); n > 0 && n < minHMACKey {
		p.add(path+".hmac_key", "make one with openssl rand -hex 32",
			"must be at least %d bytes, got %d", minHMACKey, n)
	}
	if checkPreset(p, path, m) {
		m.checkPlace(p, path, append(slices.Clone(simplePlaces), FromComposite, FromFirstOf))
	}
}

func (m MessageID) checkPlace(p *problems, path string, allowed []string) {
	if !p.require(path+".from", m.From) || !oneOf(p, path+".from", m.From, allowed...) {
		return
	}
	m.checkOperand(p, path, "name", m.Name != "", FromHeader)
	fields := append([]string{FromJSON}, framedPlaces...)
	m.checkOperand(p, path, "path", m.Path != "", fields...)
	m.checkOperand(p, path, "parts", len(m.Parts) > 0, FromComposite, FromFirstOf)
	if m.checkOption(p, path, "occurrence", m.Occurrence != "", FromHeader) {
		oneOf(p, path+".occurrence", m.Occurrence, OccurrenceFirst, OccurrenceLast)
	}
	if m.checkOption(p, path, "header_case", m.HeaderCase != "", FromHeader) {
		oneOf(p, path+".header_case", m.HeaderCase, HeaderExact, HeaderAny)
	}
	if m.checkOption(p, path, "part", m.Part != "", fields...) {
		oneOf(p, path+".part", m.Part, PartValue, PartKey)
	}
	m.checkOption(p, path, "subject", m.Subject != "", framedPlaces...)
	m.checkNormalize(p, path+".normalize")
	ignores := m.checkOption(p, path, "ignore", len(m.Ignore) > 0, FromValueHash)
	if m.checkOption(p, path, "only", len(m.Only) > 0, FromValueHash) || ignores {
		checkFields(p, path, m.Ignore, m.Only)
	}
	if m.checkOption(p, path, "format", m.Format != "", FromValueHash, FromDebezium,
		FromCockroachDB) {
		checkFormat(p, path, m.Format, m.From != FromValueHash || len(m.Ignore)+len(m.Only) > 0)
	}
	m.checkOption(p, path, "any_source", m.AnySource, FromDebezium)
	switch m.From {
	case FromJSON, FromJSONSchema:
		checkJSONPath(p, path+".path", m.Path)
	case FromAvro, FromProtobuf:
		if m.Path != WholePath {
			checkField(p, path+".path", m.Path)
		}
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
			listed(from), m.From)
	}
	return set && fits
}

// listed is "a, b and c".
func listed(words []string) string {
	if last := len(words) - 1; last > 0 {
		return strings.Join(words[:last], ", ") + " and " + words[last]
	}
	return words[0]
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
	case m.From == FromValueHash || slices.Contains(changePlaces, m.From):
		p.add(path, "", "belongs to places that have bytes of an ID, not to from: %s", m.From)
	case len(m.Normalize) > maxNormalize:
		p.add(path, "", "must be at most %d steps, got %d", maxNormalize, len(m.Normalize))
	}
	for i, step := range m.Normalize {
		oneOf(p, fmt.Sprintf("%s[%d]", path, i), step, NormalizeTrim, NormalizePayload,
			NormalizeUnquote, NormalizeLower, NormalizeUUID)
	}
}

func (m MessageID) checkParts(p *problems, path string, allowed []string) {
	if len(m.Parts) < 2 {
		p.add(path, "", "must be at least 2, got %d", len(m.Parts))
	}
	for i, part := range m.Parts {
		if part.HMACKey != "" {
			p.add(fmt.Sprintf("%s[%d].hmac_key", path, i), "",
				"belongs to message_id, not to a part")
		}
		if part.Preset != "" {
			p.add(fmt.Sprintf("%s[%d].preset", path, i), "", "belongs to message_id, not to a part")
		}
		part.checkPlace(p, fmt.Sprintf("%s[%d]", path, i), allowed)
	}
}

func checkJSONPath(p *problems, path, value string) {
	wrong := (*jsonpath.Error)(nil)
	if _, err := jsonpath.Parse(value); errors.As(err, &wrong) {
		p.add(path, wrong.Remedy, "%s: %q", wrong.Problem, value)
	}
}
