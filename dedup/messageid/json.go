package messageid

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/internal/jsonpath"
)

// jsonPath leads from a document to one of its fields.
type jsonPath jsonpath.Path

// jsonSpan is a part of a document; the zero span is nothing.
type jsonSpan struct{ start, end int }

// jsonSource finds a field of a document, which may lie in a string of another one.
type jsonSource struct {
	paths  []jsonPath // of each document, the outermost first
	ofKey  bool
	framed *sighting // of a document behind a schema ID
}

func newJSONSource(s Source, framed *sighting) (*jsonSource, error) {
	paths, err := jsonpath.Parse(s.Path)
	if err != nil {
		return nil, fmt.Errorf("path %q %w", s.Path, err)
	}
	if s.Part != "" && s.Part != PartValue && s.Part != PartKey {
		return nil, fmt.Errorf("part %q is not value or key", s.Part)
	}
	j := &jsonSource{ofKey: s.Part == PartKey, framed: framed}
	for _, path := range paths {
		j.paths = append(j.paths, jsonPath(path))
	}
	return j, nil
}

// String is the same for all spellings of the paths.
func (j *jsonSource) String() string {
	quoted := make([]string, len(j.paths))
	for i, path := range j.paths {
		quoted[i] = strconv.Quote(jsonpath.Path(path).String())
	}
	if j.ofKey {
		return "json_key:" + strings.Join(quoted, "|")
	}
	return "json:" + strings.Join(quoted, "|")
}

// find takes strings unescaped, so that two spellings of one string are one ID; numbers as they are
// written, so that no digit is rounded away: 1.0 is not 1. The string "7" and the number 7 are the
// same ID. Of equal names in an object the last one counts.
func (j *jsonSource) find(r *kgo.Record) (dedup.ID, dedup.MissingReason) {
	doc := j.part(r)
	if doc == nil {
		return "", dedup.MissingNull
	}
	if len(doc) == 0 {
		return "", dedup.MissingEmpty
	}
	if len(j.paths) == 1 && doc[0] == '{' { // nearly all
		field, missing := j.paths[0].in(doc)
		if missing != dedup.NotMissing {
			return "", missing
		}
		return idOf(field)
	}
	field, framed, missing := j.field(doc)
	if missing != dedup.NotMissing {
		return "", missing
	}
	id, missing := idOf(field)
	if framed && missing == dedup.NotMissing {
		j.framed.note()
	}
	return id, missing
}

// part is the document.
func (j *jsonSource) part(r *kgo.Record) []byte {
	if j.ofKey {
		return r.Key
	}
	return r.Value
}

// field is the text of the value to which the paths lead.
func (j *jsonSource) field(doc []byte) (field []byte, framed bool, missing dedup.MissingReason) {
	doc, framed = unframed(doc)
	for i, path := range j.paths {
		if i > 0 {
			if doc, missing = inner(field); missing != dedup.NotMissing {
				return nil, framed, missing
			}
		}
		if field, missing = path.in(doc); missing != dedup.NotMissing {
			return nil, framed, missing
		}
	}
	return field, framed, dedup.NotMissing
}

// in finds the path's field. Whether what follows it is JSON does not matter: it is as good an ID
// when a producer writes rubbish behind it.
func (p jsonPath) in(doc []byte) (field []byte, missing dedup.MissingReason) {
	span, end := scanValue(doc, skipSpace(doc, 0), p, maxJSONDepth)
	if span.end > span.start {
		return doc[span.start:span.end], dedup.NotMissing
	}
	if end == invalid || skipSpace(doc, end) != len(doc) {
		return nil, dedup.MissingUnparsable
	}
	return nil, dedup.MissingAbsent
}

// inner is the document that a string holds. An object or an array is one itself: some producers
// write the document as it is.
func inner(value []byte) ([]byte, dedup.MissingReason) {
	switch value[0] {
	case '{', '[':
		return value, dedup.NotMissing
	case '"':
		if len(value) == len(`""`) {
			return nil, dedup.MissingEmpty
		}
		return withoutMark(unescaped(value[1 : len(value)-1])), dedup.NotMissing
	case 'n':
		return nil, dedup.MissingNull
	default:
		return nil, dedup.MissingUnsupportedType
	}
}

// schemaFrame is what serializers with a schema registry write before a document: a zero and the
// ID of the schema in four bytes.
const schemaFrame = 5

// unframed is the document behind a schema ID and a byte order mark, if there are any.
func unframed(doc []byte) (rest []byte, framed bool) {
	if doc[0] > ' ' && doc[0] != mark[0] {
		return doc, false // nearly all
	}
	if doc[0] == 0 && len(doc) > schemaFrame {
		return withoutMark(doc[schemaFrame:]), true
	}
	return withoutMark(doc), false
}

const mark = "\xEF\xBB\xBF"

func withoutMark(doc []byte) []byte {
	if len(doc) >= len(mark) && string(doc[:len(mark)]) == mark {
		return doc[len(mark):]
	}
	return doc
}

// leadsTo reports whether the member with this name is the path's next step. Names are compared
// unescaped, as encoding/json does.
func (p jsonPath) leadsTo(doc []byte, name jsonSpan) bool {
	if len(p) == 0 {
		return false
	}
	quoted := doc[name.start+1 : name.end-1]
	if bytes.IndexByte(quoted, '\\') < 0 {
		return string(quoted) == p[0].Name
	}
	if len(quoted) > maxEscaped*len(p[0].Name) {
		return false
	}
	return string(appendUnescaped(nil, quoted)) == p[0].Name
}

// maxEscaped is how many bytes of a string can stand for one: \u0061.
const maxEscaped = 6

// enter reads the value to which the first step leads, and returns what the rest leads to in it.
func (p jsonPath) enter(doc []byte, i, depth int) (field jsonSpan, end int) {
	field, end = scanValue(doc, i, p[1:], depth)
	if len(p) == 1 && end != invalid {
		field = jsonSpan{i, end}
	}
	return field, end
}

// idOf makes an ID of a value that the scanner found valid.
func idOf(value []byte) (dedup.ID, dedup.MissingReason) {
	switch c := value[0]; {
	case c == '"':
		return unquote(value[1 : len(value)-1])
	case c == '-' && value[1] != 'I' || '0' <= c && c <= '9':
		return shared(value)
	case c == 'n':
		return "", dedup.MissingNull
	default:
		return "", dedup.MissingUnsupportedType
	}
}

// WholeJSON reports whether a value is one JSON document, from its beginning to its end. The ID of
// a schema may stand in front of it.
func WholeJSON(value []byte) bool {
	if len(value) == 0 {
		return false
	}
	doc, _ := unframed(value)
	_, end := scanValue(doc, skipSpace(doc, 0), nil, maxJSONDepth)
	return end != invalid && skipSpace(doc, end) == len(doc)
}

// Documents counts the values of a topic that are one JSON document, and those that only begin as
// one does.
type Documents struct{ whole, cut int64 }

func (d *Documents) Count(value []byte) {
	switch {
	case WholeJSON(value):
		d.whole++
	case LikeJSON(value):
		d.cut++
	}
}

// CutOff is how many values begin as JSON and are not whole. Where none is whole, the topic is none
// of JSON, and it is 0.
func (d *Documents) CutOff() int64 {
	if d.whole == 0 {
		return 0
	}
	return d.cut
}

// LikeJSON reports whether a value begins as a JSON object or array does.
func LikeJSON(value []byte) bool {
	if len(value) == 0 {
		return false
	}
	doc, _ := unframed(value)
	first := at(doc, skipSpace(doc, 0))
	return first == '{' || first == '['
}
