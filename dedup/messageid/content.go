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
	// Fields of a JSON value that do not count, or the only ones that do; the value is read as what
	// it says, and one that cannot be read counts as a whole. The key counts. One of the two.
	Ignore, Only []string
}

// maxContentPaths bounds how often a value is read.
const maxContentPaths = 32

// content is one that was checked.
type content struct {
	none   bool
	ignore *ignored
	only   []jsonPath
	name   string
}

// newContent returns nil for key and value.
func newContent(c Content) (*content, error) {
	switch {
	case c.None && len(c.Ignore)+len(c.Only) > 0 || len(c.Ignore) > 0 && len(c.Only) > 0:
		return nil, errors.New("none, ignore and only exclude each other")
	case c.None:
		return &content{none: true, name: "none"}, nil
	case len(c.Ignore) > 0:
		paths, name, err := contentPaths("ignore", c.Ignore)
		if err != nil {
			return nil, err
		}
		ignore := new(ignored)
		for _, path := range paths {
			ignore.add(path)
		}
		return &content{ignore: ignore, name: name}, nil
	case len(c.Only) > 0:
		paths, name, err := contentPaths("only", c.Only)
		return &content{only: paths, name: name}, err
	}
	return nil, nil
}

// contentPaths are in an order of their own, whatever the order in which they were written.
func contentPaths(kind string, texts []string) (list []jsonPath, name string, err error) {
	if len(texts) > maxContentPaths {
		return nil, "", fmt.Errorf("%s has %d paths, at most %d are allowed", kind, len(texts),
			maxContentPaths)
	}
	var names []string
	for _, text := range texts {
		paths, err := jsonpath.Parse(text)
		if err != nil {
			return nil, "", fmt.Errorf("%s: path %q %w", kind, text, err)
		}
		if len(paths) > 1 {
			return nil, "", fmt.Errorf("%s: path %q leads into a document within a string", kind,
				text)
		}
		names = append(names, paths[0].String())
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

// of appends an encoding of the part of a value that counts. It is false where the whole value
// does.
func (c *content) of(to, value []byte, with *canonical) ([]byte, bool) {
	if len(value) == 0 {
		return to, false
	}
	doc, _ := unframed(value)
	if c.ignore != nil {
		return with.document(to, doc, c.ignore)
	}
	start := len(to)
	for _, path := range c.only {
		field, missing := path.in(doc)
		if missing != dedup.NotMissing {
			return to[:start], false
		}
		var read bool
		if to, read = with.document(to, field, nil); !read {
			return to[:start], false
		}
	}
	return to, true
}

// canonicals are for extractors, which many lanes use at the same time.
var canonicals = sync.Pool{New: func() any { return newCanonical() }}

// valueHash makes equal contents equal IDs. The first byte tells a whole value from a part.
func (c *content) valueHash(r *kgo.Record) (dedup.ID, dedup.MissingReason) {
	if _, missing := shared(r.Value); missing != dedup.NotMissing {
		return "", missing
	}
	with := canonicals.Get().(*canonical)
	defer canonicals.Put(with)
	encoded, part := c.of([]byte{1}, r.Value, with)
	if !part {
		encoded = append([]byte{0}, r.Value...)
	}
	sum := sha256.Sum256(encoded)
	return dedup.ID(sum[:]), dedup.NotMissing
}
