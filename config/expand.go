package config

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// expander replaces variables, and remembers what by.
type expander struct {
	env  map[string]string
	used map[string]string // the values of variables, with their names
}

func newExpander(env map[string]string) *expander {
	return &expander{env: env, used: make(map[string]string)}
}

// expand replaces every ${NAME} by the variable's value. $${ stands for ${, and a $ before
// anything else for itself.
func (x *expander) expand(text string) (string, error) {
	var b strings.Builder
	for {
		at := strings.Index(text, "${")
		if at < 0 {
			b.WriteString(text)
			return b.String(), nil
		}
		if at > 0 && text[at-1] == '$' {
			b.WriteString(text[:at-1] + "${")
			text = text[at+2:]
			continue
		}
		value, rest, err := x.variable(text[at+2:])
		if err != nil {
			return "", err
		}
		b.WriteString(text[:at] + value)
		text = rest
	}
}

// variable looks up the name at the beginning of text, which ends with a brace. The error shows no
// more of the text than a well-formed name, because the text may be a secret.
func (x *expander) variable(text string) (value, rest string, err error) {
	name, rest, closed := strings.Cut(text, "}")
	if !closed || !variableName.MatchString(name) {
		return "", "", &Error{
			Problem: "has ${ without the name of an environment variable and }",
			Remedy:  "write $${ for the text ${",
		}
	}
	value, set := x.env[name]
	if !set {
		return "", "", &Error{
			Problem: fmt.Sprintf("environment variable %s is not set", name),
			Remedy:  fmt.Sprintf("set it, or write $${%s} for the text ${%s}", name, name),
		}
	}
	x.used[value] = name
	return value, rest, nil
}

// minHidden keeps texts readable: a number of three digits is no secret.
const minHidden = 4

// hide puts the names of variables in the place of their values. A secret may stand where it does
// not belong, and an error about that setting shows what it got.
func (x *expander) hide(text string) string {
	for value, name := range x.used {
		quoted := strconv.Quote(value)
		for _, form := range []string{value, quoted[1 : len(quoted)-1]} {
			if len(form) >= minHidden {
				text = strings.ReplaceAll(text, form, "${"+name+"}")
			}
		}
	}
	return text
}

var variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// escape protects text from expand.
func escape(text string) string { return strings.ReplaceAll(text, "${", "$${") }
