package avropath

import (
	"encoding/binary"
	"math"

	"github.com/twmb/avro"
)

// A value is read from its position. What comes back is the position behind it, or invalid for
// bytes that the schema cannot have written. Passing invalid on is safe.
const invalid = -1

// maxDepth bounds the recursion into values that nest, as JSON's does.
const maxDepth = 10000

// Kinds of skippers.
const (
	skipBytes  = iota // as many as size says
	skipNumber        // of variable length
	skipText          // behind its length
	skipRecord
	skipUnion
	skipElements
	skipEntries
)

// skipper passes one value.
type skipper struct {
	kind  int
	size  int
	parts []*skipper // of a record or a union
	inner *skipper   // of an array or a map
}

func (c *compiler) skipper(n *avro.SchemaNode, namespace string) (*skipper, error) {
	n, namespace, err := c.resolve(n, namespace)
	if err != nil {
		return nil, err
	}
	switch n.Type {
	case "null":
		return &skipper{kind: skipBytes}, nil
	case "boolean":
		return &skipper{kind: skipBytes, size: 1}, nil
	case "float":
		return &skipper{kind: skipBytes, size: 4}, nil
	case "double":
		return &skipper{kind: skipBytes, size: 8}, nil
	case "fixed":
		return &skipper{kind: skipBytes, size: n.Size}, nil
	case "int", "long", "enum":
		return &skipper{kind: skipNumber}, nil
	case "string", "bytes":
		return &skipper{kind: skipText}, nil
	case "array", "map":
		return c.container(n, namespace)
	case "union":
		s := &skipper{kind: skipUnion}
		return s, c.parts(s, n.Branches, namespace)
	}
	return c.recordSkipper(n, namespace)
}

func (c *compiler) container(n *avro.SchemaNode, namespace string) (s *skipper, err error) {
	s = &skipper{kind: skipElements}
	items := n.Items
	if n.Type == "map" {
		s.kind, items = skipEntries, n.Values
	}
	s.inner, err = c.skipper(items, namespace)
	return s, err
}

func (c *compiler) parts(s *skipper, nodes []avro.SchemaNode, namespace string) error {
	for i := range nodes {
		part, err := c.skipper(&nodes[i], namespace)
		if err != nil {
			return err
		}
		s.parts = append(s.parts, part)
	}
	return nil
}

// recordSkipper is the same one wherever the record stands: it may hold itself.
func (c *compiler) recordSkipper(n *avro.SchemaNode, namespace string) (*skipper, error) {
	name := fullName(n.Namespace, n.Name)
	if s, known := c.skippers[name]; known {
		return s, nil
	}
	s := &skipper{kind: skipRecord}
	c.skippers[name] = s
	for i := range n.Fields {
		part, err := c.skipper(&n.Fields[i].Type, namespace)
		if err != nil {
			return nil, err
		}
		s.parts = append(s.parts, part)
	}
	if s.parts = merged(s.parts); len(s.parts) == 0 {
		*s = skipper{kind: skipBytes}
	} else if len(s.parts) == 1 && s.parts[0].kind == skipBytes {
		*s = *s.parts[0]
	}
	return s, nil
}

// merged makes one skipper of neighbours that have a size each.
func merged(parts []*skipper) (fewer []*skipper) {
	for _, part := range parts {
		last := len(fewer) - 1
		switch {
		case part.kind == skipBytes && part.size == 0:
		case last >= 0 && part.kind == skipBytes && fewer[last].kind == skipBytes &&
			part.size < math.MaxInt32 && fewer[last].size < math.MaxInt32:
			fewer[last] = &skipper{kind: skipBytes, size: fewer[last].size + part.size}
		default:
			fewer = append(fewer, part)
		}
	}
	return fewer
}

func (s *skipper) skip(record []byte, i, depth int) int {
	if depth == 0 {
		return invalid
	}
	switch s.kind {
	case skipBytes:
		return pass(record, i, int64(s.size))
	case skipNumber:
		_, i = number(record, i)
		return i
	case skipText:
		_, i = lengthened(record, i)
		return i
	case skipRecord:
		for _, part := range s.parts {
			if i = part.skip(record, i, depth-1); i == invalid {
				return invalid
			}
		}
		return i
	case skipUnion:
		branch, i := number(record, i)
		if i == invalid || branch < 0 || branch >= int64(len(s.parts)) {
			return invalid
		}
		return s.parts[branch].skip(record, i, depth-1)
	}
	return s.skipBlocks(record, i, depth-1)
}

// skipBlocks passes an array or a map. The work is bounded by the bytes that are there: elements
// without any are not counted one by one.
func (s *skipper) skipBlocks(record []byte, i, depth int) int {
	for {
		count, next := blockHead(record, i)
		if next == invalid || count == 0 {
			return next
		}
		if i = s.skipElements(record, next, count, depth); i == invalid {
			return invalid
		}
	}
}

func (s *skipper) skipElements(record []byte, i int, count int64, depth int) int {
	if s.kind == skipElements && s.inner.kind == skipBytes {
		if size := int64(s.inner.size); size > 0 && count > int64(len(record))/size {
			return invalid
		}
		return pass(record, i, count*int64(s.inner.size))
	}
	for ; count > 0 && i != invalid; count-- {
		if s.kind == skipEntries {
			if _, i = lengthened(record, i); i == invalid {
				return invalid
			}
		}
		i = s.inner.skip(record, i, depth)
	}
	return i
}

// blockHead reads how many elements follow. None: the array or map ends. In how many bytes, as some
// writers say, is not believed: a reader that decodes the elements does not, either.
func blockHead(record []byte, i int) (count int64, next int) {
	count, next = number(record, i)
	if count >= 0 || next == invalid {
		return count, next
	}
	if count == math.MinInt64 {
		return 0, invalid
	}
	_, next = number(record, next)
	return -count, next
}

// pass is the position size bytes on.
func pass(record []byte, i int, size int64) int {
	if i == invalid || size < 0 || size > int64(len(record)-i) {
		return invalid
	}
	return i + int(size)
}

// number reads an int or a long.
func number(record []byte, i int) (int64, int) {
	if i == invalid || i >= len(record) {
		return 0, invalid
	}
	if b := record[i]; b < 0x80 { // nearly all
		return int64(b>>1) ^ -int64(b&1), i + 1
	}
	value, n := binary.Varint(record[i:])
	if n <= 0 {
		return 0, invalid
	}
	return value, i + n
}

// lengthened reads the bytes behind their length.
func lengthened(record []byte, i int) ([]byte, int) {
	size, i := number(record, i)
	end := pass(record, i, size)
	if end == invalid {
		return nil, invalid
	}
	return record[i:end], end
}
