// Package jsonpath reads the paths by which a configuration names the fields of JSON documents:
// order.id, items[0].id, payload|json.id.
package jsonpath

import (
	"strconv"
	"strings"
)

// Step is the name of a member; in an array it is the element's index.
type Step struct {
	Name  string
	Index int // -1 if the name is not an index
}

// Path leads from a document to one of its fields.
type Path []Step

// String is the path with its indices as names: items.0.id. A dot in a name is \. and a backslash
// is \\, everything else is itself.
func (p Path) String() string {
	names := make([]string, len(p))
	for i, step := range p {
		names[i] = strings.NewReplacer(`\`, `\\`, `.`, `\.`).Replace(step.Name)
	}
	return strings.Join(names, ".")
}

// Error is what is wrong with a path, and the right spelling.
type Error struct{ Problem, Remedy string }

func (e *Error) Error() string {
	if e.Remedy == "" {
		return e.Problem
	}
	return e.Problem + "; " + e.Remedy
}

// document separates a path to a string from the path within the document that the string holds.
const document = "|json"

// maxDocuments bounds how often a document is read that lies in another one.
const maxDocuments = 4

// Parse splits a path at its dots and brackets. There is one path for each document: every one but
// the last leads to the string that holds the next document. A backslash takes one of \.[]|$ as it
// is. The error is an *Error.
func Parse(text string) ([]Path, error) {
	if spelled, begins := withoutRoot(text); begins {
		return nil, &Error{"begins with $, which stands for nothing here",
			"write " + spelled + `, or \$ for a member of this name`}
	}
	p := parser{text: text}
	for p.at < len(text) {
		if err := p.next(); err != nil {
			return nil, err
		}
	}
	if err := p.endSegment(); err != nil {
		return nil, err
	}
	return append(p.before, p.path), nil
}

// withoutRoot is what follows the root in the spelling of JSONPath.
func withoutRoot(text string) (rest string, begins bool) {
	rest, begins = strings.CutPrefix(text, "$")
	if !begins || rest != "" && rest[0] != '.' && rest[0] != '[' {
		return "", false
	}
	if rest = strings.TrimPrefix(rest, "."); rest == "" {
		rest = "the name of a field"
	}
	return rest, true
}

type parser struct {
	text string
	at   int

	before  []Path // of the documents around the present one
	path    Path
	segment strings.Builder
	closed  bool // the last step is an index in brackets: the next dot needs no name before it
}

func (p *parser) next() *Error {
	c, rest := p.text[p.at], p.text[p.at+1:]
	switch {
	case c == '\\':
		if rest == "" || !strings.Contains(`\.[]|$`, rest[:1]) {
			return &Error{"has a lone backslash",
				`write \\ for a backslash and \. for a dot in a name`}
		}
		p.at += 2
		return p.literal(rest[0])
	case c == '.':
		p.at++
		return p.separator()
	case c == '[':
		return p.index(rest)
	case strings.HasPrefix(p.text[p.at:], document) && endsWord(rest[len(document)-1:]):
		return p.enter()
	default:
		p.at++
		return p.literal(c)
	}
}

// endsWord tells |json from a name with a bar and more letters.
func endsWord(rest string) bool { return rest == "" || strings.Contains(".[|", rest[:1]) }

func (p *parser) literal(c byte) *Error {
	if p.closed {
		return &Error{"has a name right behind a bracket", "write a dot between the two"}
	}
	p.segment.WriteByte(c)
	return nil
}

func (p *parser) separator() *Error {
	if err := p.endSegment(); err != nil {
		return err
	}
	p.closed = false
	return nil
}

// endSegment ends the name that was read, which may be missing behind a bracket only.
func (p *parser) endSegment() *Error {
	name := p.segment.String()
	p.segment.Reset()
	switch {
	case name != "":
		p.path = append(p.path, newStep(name))
	case !p.closed:
		return &Error{"has an empty segment", ""}
	}
	return nil
}

// index reads [0]; nothing needs to stand before it at the beginning of a document.
func (p *parser) index(rest string) *Error {
	digits, _, closed := strings.Cut(rest, "]")
	step := newStep(digits)
	if !closed || step.Index < 0 {
		return &Error{"has a bracket without an index",
			`write items[0] or items.0 for an element, and \[ for a bracket in a name`}
	}
	if p.segment.Len() > 0 || len(p.path) > 0 || p.closed {
		if err := p.endSegment(); err != nil {
			return err
		}
	}
	p.path, p.closed = append(p.path, step), true
	p.at += len(digits) + 2
	return nil
}

// enter goes on within the document that the path so far leads to.
func (p *parser) enter() *Error {
	if err := p.endSegment(); err != nil {
		return err
	}
	p.at += len(document)
	if p.at == len(p.text) || p.text[p.at] == '|' {
		return &Error{"has nothing behind |json", "name the field: payload|json.id"}
	}
	if p.before = append(p.before, p.path); len(p.before) == maxDocuments {
		return &Error{"has too many documents in each other", "|json may stand three times"}
	}
	p.path, p.closed = nil, false
	if p.text[p.at] == '.' {
		p.at++
	}
	return nil
}

func newStep(name string) Step {
	if n, err := strconv.Atoi(name); err == nil && n >= 0 && strconv.Itoa(n) == name {
		return Step{name, n}
	}
	return Step{name, -1}
}
