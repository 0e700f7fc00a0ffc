package avropath

import (
	"strconv"

	"github.com/twmb/avro"

	"github.com/kdedup/kdedup/dedup"
)

// Documents writes records of a schema as JSON documents. It is safe for concurrent use.
type Documents struct{ root *shape }

// CompileDocuments is Compile for who needs all of a record.
func CompileDocuments(schema string, references []string) (*Documents, error) {
	c, root, err := parse(schema, references)
	if err != nil {
		return nil, err
	}
	found, err := c.shape(root, "")
	return &Documents{found}, err
}

// Room for a document beside so many times the bytes of its record. A schema that lets records
// without a byte nest makes documents of any length.
const (
	roomBeside = 1 << 20
	roomTimes  = 32
)

// AppendJSON appends the document of a record. It is false for bytes that are no record of the
// schema, and for documents that are much larger than their record.
//
// A value has the text that it has as an ID, in quotes if it is no number; truth values and null
// are words. A record is an object of its fields without those that are null, so that a version of
// the schema with one more field that may be null says the same. Where a union has several types of
// records, the name of the type stands under an empty name, which no field has.
func (d *Documents) AppendJSON(to, record []byte) ([]byte, bool) {
	w := writer{record: record, out: to, most: len(to) + roomBeside + roomTimes*len(record)}
	if w.value(d.root, 0, maxDepth, nil) != len(record) {
		return to, false
	}
	return w.out, true
}

// Kinds of shapes.
const (
	shapeNull = iota
	shapeBool
	shapeText
	shapeNumber
	shapeRecord
	shapeUnion
	shapeArray
	shapeMap
)

// shape is a value as a document has it.
type shape struct {
	kind    int
	text    text     // of a text or a number
	passed  *skipper // of these, too
	fields  []field  // of a record
	options []*shape // of a union
	tags    [][]byte // of a union of several records: the names of the types as JSON
	inner   *shape   // of an array or a map
}

type field struct {
	name  []byte // as JSON, with the colon
	value *shape
}

func (c *compiler) shape(n *avro.SchemaNode, namespace string) (*shape, error) {
	n, namespace, err := c.resolve(n, namespace)
	if err != nil {
		return nil, err
	}
	switch n.Type {
	case "null":
		return &shape{kind: shapeNull}, nil
	case "boolean":
		return &shape{kind: shapeBool}, nil
	case "array":
		inner, err := c.shape(n.Items, namespace)
		return &shape{kind: shapeArray, inner: inner}, err
	case "map":
		inner, err := c.shape(n.Values, namespace)
		return &shape{kind: shapeMap, inner: inner}, err
	case "union":
		return c.unionShape(n, namespace)
	case "record", "error":
		return c.recordShape(n, namespace)
	}
	s := &shape{kind: shapeText}
	s.text, _ = textOf(n)
	switch s.text.kind {
	case textInt, textLong, textFloat, textDouble:
		s.kind = shapeNumber
	}
	s.passed, err = c.skipper(n, namespace)
	return s, err
}

// recordShape is the same one wherever the record stands: it may hold itself.
func (c *compiler) recordShape(n *avro.SchemaNode, namespace string) (_ *shape, err error) {
	name := fullName(n.Namespace, n.Name)
	if s, known := c.shapes[name]; known {
		return s, nil
	}
	s := &shape{kind: shapeRecord, fields: make([]field, len(n.Fields))}
	c.shapes[name] = s
	for i := range n.Fields {
		s.fields[i].name = append(quoted(nil, []byte(n.Fields[i].Name)), ':')
		if s.fields[i].value, err = c.shape(&n.Fields[i].Type, namespace); err != nil {
			return nil, err
		}
	}
	return s, nil
}

func (c *compiler) unionShape(n *avro.SchemaNode, namespace string) (*shape, error) {
	s := &shape{kind: shapeUnion}
	records, tags := 0, make([][]byte, len(n.Branches))
	for i := range n.Branches {
		option, err := c.shape(&n.Branches[i], namespace)
		if err != nil {
			return nil, err
		}
		s.options = append(s.options, option)
		if option.kind != shapeRecord {
			continue
		}
		records++
		is, _, err := c.resolve(&n.Branches[i], namespace)
		if err != nil {
			return nil, err
		}
		name := quoted(nil, []byte(fullName(is.Namespace, is.Name)))
		tags[i] = append([]byte(`"":`), name...)
	}
	if records > 1 {
		s.tags = tags
	}
	return s, nil
}

// writer writes one document.
type writer struct {
	record, out []byte
	most        int // bytes of out
}

// value writes the value at i and returns the position behind it, or invalid. A tag is the first
// member of a record.
func (w *writer) value(s *shape, i, depth int, tag []byte) int {
	if depth == 0 || i == invalid || len(w.out) > w.most {
		return invalid
	}
	switch s.kind {
	case shapeNull:
		w.out = append(w.out, null...)
		return i
	case shapeBool:
		if i == len(w.record) || w.record[i] > 1 {
			return invalid
		}
		w.out = strconv.AppendBool(w.out, w.record[i] == 1)
		return i + 1
	case shapeText, shapeNumber:
		return w.scalar(s, i)
	case shapeRecord:
		return w.object(s, i, depth-1, tag)
	case shapeUnion:
		branch, i := number(w.record, i)
		if i == invalid || branch < 0 || branch >= int64(len(s.options)) {
			return invalid
		}
		if s.tags != nil {
			tag = s.tags[branch]
		}
		return w.value(s.options[branch], i, depth-1, tag)
	}
	return w.blocks(s, i, depth-1)
}

const null = "null"

func (w *writer) object(s *shape, i, depth int, tag []byte) int {
	w.out = append(append(w.out, '{'), tag...)
	some := len(tag) > 0
	for f := range s.fields {
		before := len(w.out)
		if some {
			w.out = append(w.out, ',')
		}
		w.out = append(w.out, s.fields[f].name...)
		begin := len(w.out)
		if i = w.value(s.fields[f].value, i, depth, nil); i == invalid {
			return invalid
		}
		if string(w.out[begin:]) == null {
			w.out = w.out[:before]
			continue
		}
		some = true
	}
	w.out = append(w.out, '}')
	return i
}

// blocks writes an array or a map.
func (w *writer) blocks(s *shape, i, depth int) int {
	opening, closing := byte('['), byte(']')
	if s.kind == shapeMap {
		opening, closing = '{', '}'
	}
	w.out = append(w.out, opening)
	for some := false; ; {
		count, next := blockHead(w.record, i)
		if next == invalid {
			return invalid
		}
		if i = next; count == 0 {
			w.out = append(w.out, closing)
			return i
		}
		for ; count > 0; count, some = count-1, true {
			if some {
				w.out = append(w.out, ',')
			}
			if s.kind == shapeMap {
				var name []byte
				if name, i = lengthened(w.record, i); i == invalid {
					return invalid
				}
				w.out = append(quoted(w.out, name), ':')
			}
			if i = w.value(s.inner, i, depth, nil); i == invalid {
				return invalid
			}
		}
	}
}

func (w *writer) scalar(s *shape, i int) int {
	end := s.passed.skip(w.record, i, maxDepth)
	if end == invalid {
		return invalid
	}
	switch value, missing := s.text.read(w.record, i); {
	case missing == dedup.MissingUnparsable:
		return invalid
	case missing == dedup.MissingUnsupportedType: // not a number, or a decimal of many digits
		w.out = quoted(w.out, w.record[i:end])
	case s.kind == shapeNumber:
		w.out = append(w.out, value...)
	default:
		w.out = quoted(w.out, value)
	}
	return end
}

// quoted appends a string of JSON that stands for the text. Bytes that are not UTF-8 stay as they
// are: U+FFFD in their place would make different texts equal.
func quoted(to, text []byte) []byte {
	const digits = "0123456789abcdef"
	to = append(to, '"')
	for _, c := range text {
		switch {
		case c == '"' || c == '\\':
			to = append(to, '\\', c)
		case c < ' ':
			to = append(to, '\\', 'u', '0', '0', digits[c>>4], digits[c&15])
		default:
			to = append(to, c)
		}
	}
	return append(to, '"')
}
