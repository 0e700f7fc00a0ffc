package report

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/internal/jsonpath"
)

const (
	mostContents     = 5_000    // IDs of a sample whose first record's value is kept
	mostContentBytes = 32 << 20 // of these values together
	mostSets         = 1_000    // of fields, that conflicts differ in
	shownSets        = 10
)

// contents compares the records of an ID, field by field, where their fingerprints differ.
type contents struct {
	read     func(context.Context, *kgo.Record) ([]byte, bool, error) // nil: compare nothing
	first    idSample[firstContent]
	bytes    int
	compared int64
	unread   int64            // of a value that has no fields
	sets     map[string]int64 // paths of the fields, each behind a zero
	more     int64            // conflicts of sets for which there is no room
}

type firstContent struct {
	fingerprint dedup.Fingerprint
	key         string
	doc         []byte // nil: it has no fields, or is too large to be kept
}

func newContents(o Options) *contents {
	return &contents{read: o.Document, first: newIDSample[firstContent](mostContents),
		sets: make(map[string]int64)}
}

func (c *contents) add(
	ctx context.Context, r *kgo.Record, id dedup.ID, fingerprint dedup.Fingerprint,
) error {
	if c.read == nil || !c.first.has(id) {
		return nil
	}
	first, known := c.first.kept[id]
	if known && first.fingerprint.Matches(fingerprint) {
		return nil
	}
	doc, has, err := c.read(ctx, r)
	switch {
	case err != nil:
		return err
	case known:
		c.compare(first, string(r.Key), doc, has)
		return nil
	case !has || len(doc) > mostContentBytes/32:
		doc = nil
	}
	c.first.put(id, firstContent{fingerprint, string(r.Key), slices.Clone(doc)})
	c.bytes += len(doc)
	for c.bytes > mostContentBytes {
		if c.count(); c.bytes > mostContentBytes {
			c.first.thin()
		}
	}
	return nil
}

// count finds out what is left of the bytes: the sample has lost some of its IDs.
func (c *contents) count() {
	c.bytes = 0
	for _, kept := range c.first.kept {
		c.bytes += len(kept.doc)
	}
}

func (c *contents) compare(first firstContent, key string, doc []byte, has bool) {
	c.compared++
	one, ok := jsonpath.Texts(first.doc)
	other, alsoOK := jsonpath.Texts(doc)
	if !has || !ok || !alsoOK || first.key != key {
		c.unread++
		return
	}
	maps.DeleteFunc(one, func(path, text string) bool {
		same := other[path] == text
		delete(other, path)
		return same
	})
	maps.Copy(one, other)
	set := strings.Join(slices.Sorted(maps.Keys(one)), "\x00")
	if _, known := c.sets[set]; !known && len(c.sets) >= mostSets {
		c.more++
		return
	}
	c.sets[set]++
}

// differing is what the report has of it.
func (c *contents) differing() Differing {
	d := Differing{Compared: c.compared, Whole: c.unread, Share: c.first.share(),
		Fields: []FieldCount{}, Sets: []FieldSet{}}
	fields := make(map[string]int64)
	for set, n := range c.sets {
		paths := strings.Split(set, "\x00")
		if set == "" {
			paths = []string{} // the spelling of a value that counts as a whole
		}
		for _, path := range paths {
			fields[path] += n
		}
		d.Sets = append(d.Sets, FieldSet{paths, n})
	}
	for path, n := range fields {
		d.Fields = append(d.Fields, FieldCount{path, n})
	}
	slices.SortFunc(d.Fields, func(a, b FieldCount) int {
		return cmp.Or(cmp.Compare(b.Conflicts, a.Conflicts), cmp.Compare(a.Field, b.Field))
	})
	slices.SortFunc(d.Sets, func(a, b FieldSet) int {
		return cmp.Or(cmp.Compare(b.Conflicts, a.Conflicts), slices.Compare(a.Fields, b.Fields))
	})
	d.Fields = d.Fields[:min(len(d.Fields), shownSets)]
	d.Sets = d.Sets[:min(len(d.Sets), shownSets)]
	return d
}
