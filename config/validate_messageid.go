package config

import (
	"fmt"
	"strings"
)

func (m MessageID) check(p *problems, path string, outermost bool) {
	allowed := []string{FromHeader, FromKey, FromJSON, FromValueHash}
	if outermost {
		allowed = append(allowed, FromComposite)
	}
	if !p.require(path+".from", m.From) || !oneOf(p, path+".from", m.From, allowed...) {
		return
	}
	m.checkOperand(p, path, "name", m.Name != "", FromHeader)
	m.checkOperand(p, path, "path", m.Path != "", FromJSON)
	m.checkOperand(p, path, "parts", len(m.Parts) > 0, FromComposite)
	if m.From == FromJSON {
		checkJSONPath(p, path+".path", m.Path)
	}
	if m.From == FromComposite {
		m.checkParts(p, path+".parts")
	}
}

// checkOperand sees to it that a setting is there exactly with the one kind of place it is for.
func (m MessageID) checkOperand(p *problems, path, key string, set bool, from string) {
	switch {
	case m.From == from && !set:
		p.add(path+"."+key, "", "is required with from: %s", from)
	case m.From != from && set:
		p.add(path+"."+key, "", "belongs to from: %s, not to from: %s", from, m.From)
	}
}

func (m MessageID) checkParts(p *problems, path string) {
	if len(m.Parts) < 2 {
		p.add(path, "", "must be at least 2, got %d", len(m.Parts))
	}
	for i, part := range m.Parts {
		part.check(p, fmt.Sprintf("%s[%d]", path, i), false)
	}
}

// checkJSONPath checks the segments between the dots; a backslash takes the next character as it
// is, which must be a dot or a backslash.
func checkJSONPath(p *problems, path, value string) {
	plain := strings.NewReplacer(`\\`, "x", `\.`, "x").Replace(value)
	if strings.Contains(plain, `\`) {
		p.add(path, `write \\ for a backslash and \. for a dot in a name`,
			"has a lone backslash: %q", value)
	}
	for segment := range strings.SplitSeq(plain, ".") {
		if segment == "" {
			p.add(path, "", "has an empty segment: %q", value)
		}
	}
}
