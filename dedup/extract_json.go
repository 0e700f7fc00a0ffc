package dedup

import (
	"bytes"
	"errors"
	"strconv"
	"strings"

	"github.com/twmb/franz-go/pkg/kgo"
)

// jsonPath leads from a document to one of its fields.
type jsonPath []jsonStep

// jsonStep is the name of a member; in an array it is the element's index.
type jsonStep struct {
	name  string
	index int // -1 if the name is not an index
}

// jsonSpan is a part of a document; the zero span is nothing.
type jsonSpan struct{ start, end int }

// parseJSONPath splits a path at its dots; \. is a dot within a name and \\ a backslash.
func parseJSONPath(path string) (jsonPath, error) {
	var (
		steps   jsonPath
		segment strings.Builder
	)
	for i := 0; i < len(path); i++ {
		switch {
		case path[i] == '\\' && i+1 < len(path) && (path[i+1] == '.' || path[i+1] == '\\'):
			i++
			segment.WriteByte(path[i])
		case path[i] == '.':
			steps = append(steps, newJSONStep(segment.String()))
			segment.Reset()
		default:
			segment.WriteByte(path[i])
		}
	}
	steps = append(steps, newJSONStep(segment.String()))
	for _, s := range steps {
		if s.name == "" {
			return nil, errors.New("path " + strconv.Quote(path) + " has an empty segment")
		}
	}
	return steps, nil
}

func newJSONStep(name string) jsonStep {
	if n, err := strconv.Atoi(name); err == nil && n >= 0 && strconv.Itoa(n) == name {
		return jsonStep{name, n}
	}
	return jsonStep{name, -1}
}

// leadsTo reports whether the member with this name is the path's next step. Names are compared
// unescaped, as encoding/json does.
func (p jsonPath) leadsTo(doc []byte, name jsonSpan) bool {
	if len(p) == 0 {
		return false
	}
	quoted := doc[name.start+1 : name.end-1]
	if bytes.IndexByte(quoted, '\\') < 0 {
		return string(quoted) == p[0].name
	}
	return string(appendUnescaped(nil, quoted)) == p[0].name
}

// enter reads the value to which the first step leads, and returns what the rest leads to in it.
func (p jsonPath) enter(doc []byte, i, depth int) (field jsonSpan, end int) {
	field, end = scanValue(doc, i, p[1:], depth)
	if len(p) == 1 {
		field = jsonSpan{i, end}
	}
	return field, end
}

// fromJSON finds a field of the value. Strings are taken unescaped, so that two spellings of one
// string are one ID; numbers as they are written, so that no digit is rounded away: 1.0 is not 1.
// The string "7" and the number 7 are the same ID. Of equal names in an object the last one counts.
func fromJSON(path jsonPath) func(*kgo.Record) (ID, MissingReason) {
	return func(r *kgo.Record) (ID, MissingReason) {
		doc := r.Value
		if doc == nil {
			return "", MissingNull
		}
		if len(doc) == 0 {
			return "", MissingEmpty
		}
		field, end := scanValue(doc, skipSpace(doc, 0), path, maxJSONDepth)
		if end == invalid || skipSpace(doc, end) != len(doc) {
			return "", MissingUnparsable
		}
		return idOf(doc[field.start:field.end])
	}
}

// idOf makes an ID of a value that the scanner found valid; no bytes mean that there is none.
func idOf(value []byte) (ID, MissingReason) {
	switch {
	case len(value) == 0:
		return "", MissingAbsent
	case value[0] == '"':
		return unquote(value[1 : len(value)-1])
	case value[0] == '-' || '0' <= value[0] && value[0] <= '9':
		return shared(value)
	case value[0] == 'n':
		return "", MissingNull
	default:
		return "", MissingUnsupportedType
	}
}
