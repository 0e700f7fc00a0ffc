package config

import (
	"errors"
	"fmt"
	"strings"
)

// Error is one thing that is wrong with a configuration. Load and Validate join all they find.
type Error struct {
	Path    string // the setting, e.g. topics[1].ttl; empty for the file as a whole
	Place   string // where its value stands, "line 9" or the environment variable; may be empty
	Problem string
	Remedy  string // what to do about it, if the problem does not say
}

// Error is "path (place): problem; remedy".
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.Path)
	switch {
	case e.Place != "" && e.Path != "":
		fmt.Fprintf(&b, " (%s)", e.Place)
	case e.Place != "":
		b.WriteString(e.Place)
	}
	if b.Len() > 0 {
		b.WriteString(": ")
	}
	b.WriteString(e.Problem)
	if e.Remedy != "" {
		b.WriteString("; ")
		b.WriteString(e.Remedy)
	}
	return b.String()
}

// problems collects errors, the first one about each setting: a value that cannot be read must
// not be reported a second time as missing or out of range.
type problems struct {
	found  []*Error
	places map[string]string // where the settings' values stand, by path

	variables *expander // of the values; nil if they hold none
}

func (p *problems) add(path, remedy, format string, args ...any) {
	p.addError(&Error{Path: path, Problem: fmt.Sprintf(format, args...), Remedy: remedy})
}

func (p *problems) addError(e *Error) {
	for _, earlier := range p.found {
		if covers(earlier.Path, e.Path) {
			return
		}
	}
	if e.Place == "" {
		e.Place = p.place(e.Path)
	}
	if p.variables != nil {
		e.Problem, e.Remedy = p.variables.hide(e.Problem), p.variables.hide(e.Remedy)
	}
	p.found = append(p.found, e)
}

// place is where a value stands. That of an element of a list may be that of the list.
func (p *problems) place(path string) string {
	if place := p.places[path]; place != "" || !strings.HasSuffix(path, "]") {
		return place
	}
	return p.places[path[:strings.LastIndexByte(path, '[')]]
}

// covers reports whether path is the setting outer or lies inside it.
func covers(outer, path string) bool {
	rest, inside := strings.CutPrefix(path, outer)
	return inside && (rest == "" || outer == "" || rest[0] == '.' || rest[0] == '[')
}

// err joins what was found; nil when nothing was.
func (p *problems) err() error {
	errs := make([]error, len(p.found))
	for i, e := range p.found {
		errs[i] = e
	}
	return errors.Join(errs...)
}
