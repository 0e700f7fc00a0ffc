package messageid

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/internal/jsonpath"
)

// Content says what of a record makes two of them the same. The zero value: key and value.
type Content struct {
	None bool // records with equal IDs are always the same
	// Fields of a value that do not count, or the only ones that do; the value is read as what it
	// says, and one that cannot be read counts as a whole. The key counts. One of the two.
	Ignore, Only []string
	// Format of the value: FormatJSON, the default, or one that needs the schemas of a registry.
	Format string
}

// maxContentPaths bounds how often a value is read.
const maxContentPaths = 32

// content is one that was checked.
type content struct {
	none      bool
	ignore    *ignored
	only      []jsonPath
	documents *documents // nil: the value is one itself
	name      string
}

// newContent returns nil for key and value.
func newContent(c Content, registry Registry, news *news) (_ *content, err error) {
	switch {
	case c.None && len(c.Ignore)+len(c.Only) > 0 || len(c.Ignore) > 0 && len(c.Only) > 0:
		return nil, errors.New("none, ignore and only exclude each other")
	case c.None:
		return &content{none: true, name: "none"}, nil
	case len(c.Ignore)+len(c.Only) == 0:
		return nil, nil
	}
	part := new(content)
	if part.documents, err = newDocuments(c.Format, false, registry, news); err != nil {
		return nil, err
	}
	if len(c.Only) > 0 {
		part.only, part.name, err = contentPaths("only", c.Only)
	} else {
		var paths []jsonPath
		paths, part.name, err = contentPaths("ignore", c.Ignore)
		part.ignore = new(ignored)
		for _, path := range paths {
			part.ignore.add(path)
		}
	}
	if part.documents != nil {
		part.name = c.Format + " " + part.name
		part.documents.compile = func(s Schema) compiled {
			if err := hasAny(c.Format, c.Only, s); err != nil {
				return unusable(err)
			}
			return compileDocuments(c.Format, s)
		}
	}
	return part, err
}

// hasAny returns an error for a schema without any of the fields: all its records would say the
// same.
func hasAny(format string, paths []string, s Schema) (err error) {
	for _, path := range paths {
		err = CheckField(Source{From: format, Path: path}, s)
		if err == nil || s.Type != format {
			return nil
		}
	}
	return err
}

// contentPaths are in an order of their own, whatever the order in which they were written.
func contentPaths(kind string, texts []string) (list []jsonPath, name string, err error) {
	if len(texts) > maxContentPaths {
		return nil, "", fmt.Errorf("%s has %d paths, at most %d are allowed", kind, len(texts),
			maxContentPaths)
	}
	var names []string
	for _, text := range texts {
		path, err := onePath(text)
		if err != nil {
			return nil, "", fmt.Errorf("%s: %w", kind, err)
		}
		names = append(names, path.String())
	}
	slices.Sort(names)
	names = slices.Compact(names)
	for i, text := range names {
		path, err := parseWritten(text)
		if err != nil {
			return nil, "", err
		}
		list, names[i] = append(list, path), strconv.Quote(text)
	}
	return list, kind + " " + strings.Join(names, ","), nil
}

// parseWritten reads what jsonpath.Path.String wrote.
func parseWritten(text string) (jsonPath, error) {
	escaped := strings.NewReplacer("|", `\|`, "[", `\[`, "$", `\$`).Replace(text)
	paths, err := jsonpath.Parse(escaped)
	if err != nil {
		return nil, err
	}
	return jsonPath(paths[0]), nil
}

// encoder has the buffers for encodings of contents. It is not safe for concurrent use.
type encoder struct {
	canonical *canonical
	doc       []byte // of a value with a schema
}

func newEncoder() *encoder { return &encoder{canonical: newCanonical()} }

// read is the record's document, up to the next call.
func (e *encoder) read(from *documents, r *kgo.Record) ([]byte, dedup.MissingReason) {
	if cap(e.doc) > mostKept {
		e.doc = nil
	}
	doc, missing := from.read(e.doc[:0], r)
	e.doc = doc
	return doc, missing
}

// of appends an encoding of the part of a record's value that counts. It is false where the whole
// value does.
func (c *content) of(to []byte, r *kgo.Record, with *encoder) ([]byte, bool) {
	if len(r.Value) == 0 {
		return to, false
	}
	var doc []byte
	if c.documents == nil {
		doc, _ = unframed(r.Value)
	} else {
		var missing dedup.MissingReason
		if doc, missing = with.read(c.documents, r); missing != dedup.NotMissing {
			return to, false
		}
	}
	if c.ignore != nil {
		return with.canonical.document(to, doc, c.ignore)
	}
	return c.chosen(to, doc, with.canonical)
}

// encodedAbsent stands for a field that a record of a schema leaves out. Where there is no schema,
// nothing says that the field could be there, and the whole value counts.
const encodedAbsent = '-'

func (c *content) chosen(to, doc []byte, with *canonical) ([]byte, bool) {
	start := len(to)
	for _, path := range c.only {
		field, missing := path.in(doc)
		if missing == dedup.MissingAbsent && c.documents != nil {
			to = append(to, encodedAbsent)
			continue
		}
		read := false
		if missing == dedup.NotMissing {
			to, read = with.document(to, field, nil)
		}
		if !read {
			return to[:start], false
		}
	}
	return to, true
}

// encoders are for extractors, which many lanes use at the same time.
var encoders = sync.Pool{New: func() any { return newEncoder() }}

// valueHash makes equal contents equal IDs. The first byte tells a whole value from a part.
func (c *content) valueHash(r *kgo.Record) (dedup.ID, dedup.MissingReason) {
	if _, missing := shared(r.Value); missing != dedup.NotMissing {
		return "", missing
	}
	if c.unresolved(r) {
		return "", dedup.MissingUnresolved
	}
	with := encoders.Get().(*encoder)
	defer encoders.Put(with)
	encoded, part := c.of([]byte{1}, r, with)
	if part && c.leavesNothingOf(r.Value) {
		return "", dedup.MissingEmpty
	}
	if !part {
		encoded = append([]byte{0}, r.Value...)
	}
	sum := sha256.Sum256(encoded)
	return dedup.ID(sum[:]), dedup.NotMissing
}

func (c *content) unresolved(r *kgo.Record) bool {
	return c.documents != nil && c.documents.unresolved(r)
}

// before finds no ID until it is known what the record says: its fingerprint would change.
func (c *content) before(find finder) finder {
	return func(r *kgo.Record) (dedup.ID, dedup.MissingReason) {
		id, missing := find(r)
		if missing == dedup.NotMissing && c.unresolved(r) {
			return "", dedup.MissingUnresolved
		}
		return id, missing
	}
}
