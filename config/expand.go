package config

import (
	"fmt"
	"regexp"
	"strings"
)

// expand replaces every ${NAME} by the variable's value. $${ stands for ${, and a $ before
// anything else for itself.
func expand(text string, env map[string]string) (string, error) {
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
		value, rest, err := variable(text[at+2:], env)
		if err != nil {
			return "", err
		}
		b.WriteString(text[:at] + value)
		text = rest
	}
}

// variable looks up the name at the beginning of text, which ends with a brace. The error shows no
// more of the text than a well-formed name, because the text may be a secret.
func variable(text string, env map[string]string) (value, rest string, err error) {
	name, rest, closed := strings.Cut(text, "}")
	if !closed || !variableName.MatchString(name) {
		return "", "", &Error{
			Problem: "has ${ without the name of an environment variable and }",
			Remedy:  "write $${ for the text ${",
		}
	}
	value, set := env[name]
	if !set {
		return "", "", &Error{
			Problem: fmt.Sprintf("environment variable %s is not set", name),
			Remedy:  fmt.Sprintf("set it, or write $${%s} for the text ${%s}", name, name),
		}
	}
	return value, rest, nil
}

var variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// escape protects text from expand.
func escape(text string) string { return strings.ReplaceAll(text, "${", "$${") }
