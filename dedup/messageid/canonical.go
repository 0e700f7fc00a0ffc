package messageid

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"hash"
	"slices"
)

// canonical hashes JSON by what it says: white space, the order of members and the spelling of
// strings do not matter, and of equal names the last one counts. Numbers count as they are written.
// Each object and array is hashed by itself, so the work grows with the document and no faster. It
// is not safe for concurrent use; it exists to keep the buffers.
type canonical struct {
	sha     hash.Hash
	scratch []byte   // encodings of values; a container's is as long as its hash
	members []member // of the objects that are open, the outermost first
	sum     [sha256.Size]byte
	length  [binary.MaxVarintLen64]byte // here it is not allocated for each name
}

// member is a name with the place of its value's encoding.
type member struct {
	name       []byte
	start, end int
}

// mostKept bounds the memory that stays behind a large document.
const mostKept = 1 << 20

func newCanonical() *canonical { return &canonical{sha: sha256.New()} }

// Kinds of encodings.
const (
	encodedText    = 's'
	encodedWord    = 'w' // a number, true, false, null
	encodedObject  = 'o'
	encodedArray   = 'a'
	encodedIgnored = 'i' // an element; its place counts
)

// document appends the encoding of a whole document without what is ignored. It is false for what
// is not JSON.
func (c *canonical) document(to, doc []byte, without *ignored) ([]byte, bool) {
	defer c.letGo()
	end := c.value(doc, skipSpace(doc, 0), without, maxJSONDepth)
	if end == invalid || skipSpace(doc, end) != len(doc) {
		return to, false
	}
	return append(to, c.scratch...), true
}

func (c *canonical) letGo() {
	clear(c.members) // where reading ended early
	c.scratch, c.members = c.scratch[:0], c.members[:0]
	if cap(c.scratch) > mostKept || cap(c.members) > mostKept/64 {
		c.scratch, c.members = nil, nil
	}
}

// value appends to scratch, and returns the position behind the value or invalid.
func (c *canonical) value(doc []byte, i int, without *ignored, depth int) (end int) {
	switch first := at(doc, i); first {
	case '{', '[':
		if depth == 0 {
			return invalid
		}
		if first == '{' {
			return c.object(doc, i, without, depth-1)
		}
		return c.array(doc, i, without, depth-1)
	case '"':
		if end = skipString(doc, i); end != invalid {
			c.encode(encodedText, unescaped(doc[i+1:end-1]))
		}
		return end
	}
	if _, end = scanValue(doc, i, nil, depth); end != invalid {
		c.encode(encodedWord, doc[i:end])
	}
	return end
}

func (c *canonical) encode(kind byte, text []byte) {
	c.scratch = binary.AppendUvarint(append(c.scratch, kind), uint64(len(text)))
	c.scratch = append(c.scratch, text...)
}

func (c *canonical) object(doc []byte, i int, without *ignored, depth int) int {
	base, first := len(c.scratch), len(c.members)
	more := true
	if i = skipSpace(doc, i+1); at(doc, i) == '}' {
		i, more = i+1, false
	}
	for more {
		end := skipString(doc, i)
		if end == invalid {
			return invalid
		}
		name := unescaped(doc[i+1 : end-1])
		if i = skipSpace(doc, end); at(doc, i) != ':' {
			return invalid
		}
		i = skipSpace(doc, i+1)
		inner, start := without.member(name), len(c.scratch)
		if inner.whole() {
			_, i = scanValue(doc, i, nil, depth)
		} else {
			i = c.value(doc, i, inner, depth)
			c.members = append(c.members, member{name, start, len(c.scratch)})
		}
		if i, more = skipSeparator(doc, i, '}'); i == invalid {
			return invalid
		}
	}
	c.closeObject(base, c.members[first:])
	clear(c.members[first:]) // names share memory with the record
	c.members = c.members[:first]
	return i
}

// closeObject puts the hash of an object in the place of its members.
func (c *canonical) closeObject(base int, members []member) {
	slices.SortStableFunc(members, func(a, b member) int { return bytes.Compare(a.name, b.name) })
	c.sha.Reset()
	for i, m := range members {
		if i+1 < len(members) && bytes.Equal(m.name, members[i+1].name) {
			continue // the last one counts
		}
		c.sha.Write(binary.AppendUvarint(c.length[:0], uint64(len(m.name))))
		c.sha.Write(m.name)
		c.sha.Write(c.scratch[m.start:m.end])
	}
	c.scratch = append(append(c.scratch[:base], encodedObject), c.sha.Sum(c.sum[:0])...)
}

func (c *canonical) array(doc []byte, i int, without *ignored, depth int) int {
	base, more := len(c.scratch), true
	if i = skipSpace(doc, i+1); at(doc, i) == ']' {
		i, more = i+1, false
	}
	for index := 0; more; index++ {
		if inner := without.element(index); inner.whole() {
			_, i = scanValue(doc, i, nil, depth)
			c.scratch = append(c.scratch, encodedIgnored)
		} else {
			i = c.value(doc, i, inner, depth)
		}
		if i, more = skipSeparator(doc, i, ']'); i == invalid {
			return invalid
		}
	}
	c.sha.Reset()
	c.sha.Write(c.scratch[base:])
	c.scratch = append(append(c.scratch[:base], encodedArray), c.sha.Sum(c.sum[:0])...)
	return i
}

// ignored are the paths that go on from a place in a document; nil: none.
type ignored struct {
	all  bool // the value itself is ignored
	next []ignoredStep
}

type ignoredStep struct {
	name  string
	index int
	rest  *ignored
}

func (g *ignored) whole() bool { return g != nil && g.all }

func (g *ignored) add(path jsonPath) {
	if len(path) == 0 {
		g.all = true
		return
	}
	rest := g.member([]byte(path[0].Name))
	if rest == nil {
		rest = new(ignored)
		g.next = append(g.next, ignoredStep{path[0].Name, path[0].Index, rest})
	}
	rest.add(path[1:])
}

func (g *ignored) member(name []byte) *ignored {
	if g == nil {
		return nil
	}
	for i := range g.next {
		if g.next[i].name == string(name) {
			return g.next[i].rest
		}
	}
	return nil
}

func (g *ignored) element(index int) *ignored {
	if g == nil {
		return nil
	}
	for i := range g.next {
		if g.next[i].index == index {
			return g.next[i].rest
		}
	}
	return nil
}
