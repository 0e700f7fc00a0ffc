// Package avropath finds one field in the bytes of an Avro record. A schema and a path become a
// plan once; the plan then walks from value to value without decoding what it passes. Who needs all
// of a record reads it as a JSON document.
package avropath

import (
	"errors"
	"fmt"
	"slices"

	"github.com/twmb/avro"

	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/internal/jsonpath"
)

// Plan finds the field. It is safe for concurrent use.
type Plan struct{ root *finder }

// ErrNoField is wrapped where the schema has no field at the path: no record written with it has.
var ErrNoField = errors.New("the schema has no such field")

// ErrNoID is wrapped where the path leads to a type that has no text of its own.
var ErrNoID = errors.New("the field cannot be an ID")

// Compile makes a plan for a schema, whose references come before it in the order in which they
// need each other.
func Compile(schema string, references []string, path jsonpath.Path) (*Plan, error) {
	c, root, err := parse(schema, references)
	if err != nil {
		return nil, err
	}
	found, err := c.finder(root, "", path, 0)
	if err != nil {
		return nil, err
	}
	return &Plan{found}, nil
}

func parse(schema string, references []string) (*compiler, *avro.SchemaNode, error) {
	var cache avro.SchemaCache
	for _, text := range references {
		if _, err := cache.Parse(text, avro.WithLaxNames(nil)); err != nil {
			return nil, nil, fmt.Errorf("a referenced schema: %w", err)
		}
	}
	parsed, err := cache.Parse(schema, avro.WithLaxNames(nil))
	if err != nil {
		return nil, nil, err
	}
	root := parsed.Root()
	c := &compiler{named: make(map[string]named), skippers: make(map[string]*skipper),
		shapes: make(map[string]*shape)}
	c.collect(root, "")
	return c, root, nil
}

// Find returns the text of the field. It shares memory with the record where the field is a text
// already. What stands behind the field is not looked at.
func (p *Plan) Find(record []byte) (text []byte, missing dedup.MissingReason) {
	return p.root.find(record, 0)
}

// Kinds of finders.
const (
	findNothing = iota // a branch of a union in which the path leads nowhere
	findNull
	findRecord
	findUnion
	findElement
	findEntry
	findText
)

// finder reads one value and goes on to the field in it.
type finder struct {
	kind    int
	before  []*skipper // of a record: what stands before the field
	inner   *finder    // of a record, an array or a map
	passed  *skipper   // of an array or a map: an element on which the path does not go on
	index   int        // of an array
	name    string     // of a map's entry
	options []*finder  // of a union
	text    text
}

// compiler knows the schema's named types.
type compiler struct {
	named    map[string]named
	skippers map[string]*skipper // of records, which may hold themselves
	shapes   map[string]*shape   // the same
}

type named struct {
	node      *avro.SchemaNode
	namespace string // in which names within it are resolved
}

func (c *compiler) collect(n *avro.SchemaNode, namespace string) {
	if slices.Contains([]string{"record", "error", "enum", "fixed"}, n.Type) {
		namespace = n.Namespace
		c.named[fullName(namespace, n.Name)] = named{n, namespace}
	}
	for i := range n.Fields {
		c.collect(&n.Fields[i].Type, namespace)
	}
	for i := range n.Branches {
		c.collect(&n.Branches[i], namespace)
	}
	for _, inner := range []*avro.SchemaNode{n.Items, n.Values} {
		if inner != nil {
			c.collect(inner, namespace)
		}
	}
}

func fullName(namespace, name string) string {
	if namespace == "" {
		return name
	}
	return namespace + "." + name
}

// resolve follows a name to the type that it names, and returns in which namespace that lies.
func (c *compiler) resolve(n *avro.SchemaNode, namespace string) (*avro.SchemaNode, string, error) {
	switch n.Type {
	case "record", "error", "enum", "fixed":
		return n, n.Namespace, nil
	case "null", "boolean", "int", "long", "float", "double", "string", "bytes", "array", "map",
		"union":
		return n, namespace, nil
	}
	for _, name := range []string{fullName(namespace, n.Type), n.Type} {
		if is, known := c.named[name]; known {
			return is.node, is.namespace, nil
		}
	}
	return nil, "", fmt.Errorf("the schema does not define %s", n.Type)
}

func (c *compiler) finder(
	n *avro.SchemaNode, namespace string, path jsonpath.Path, at int,
) (*finder, error) {
	n, namespace, err := c.resolve(n, namespace)
	if err != nil {
		return nil, err
	}
	switch {
	case n.Type == "union":
		return c.union(n, namespace, path, at)
	case at == len(path):
		return leaf(n, path)
	case n.Type == "record" || n.Type == "error":
		return c.record(n, namespace, path, at)
	case n.Type == "array" && path[at].Index >= 0:
		f := &finder{kind: findElement, index: path[at].Index}
		return c.within(f, n.Items, namespace, path, at)
	case n.Type == "map":
		f := &finder{kind: findEntry, name: path[at].Name}
		return c.within(f, n.Values, namespace, path, at)
	}
	return nil, fmt.Errorf("%w: before %s stands %s", ErrNoField, path[:at+1], article(n.Type))
}

// within goes on in the elements of an array or the values of a map.
func (c *compiler) within(
	f *finder, n *avro.SchemaNode, namespace string, path jsonpath.Path, at int,
) (_ *finder, err error) {
	if f.passed, err = c.skipper(n, namespace); err != nil {
		return nil, err
	}
	f.inner, err = c.finder(n, namespace, path, at+1)
	return f, err
}

func (c *compiler) record(
	n *avro.SchemaNode, namespace string, path jsonpath.Path, at int,
) (*finder, error) {
	f := &finder{kind: findRecord}
	for i := range n.Fields {
		field := &n.Fields[i]
		if field.Name == path[at].Name {
			inner, err := c.finder(&field.Type, namespace, path, at+1)
			f.before, f.inner = merged(f.before), inner
			return f, err
		}
		skip, err := c.skipper(&field.Type, namespace)
		if err != nil {
			return nil, err
		}
		f.before = append(f.before, skip)
	}
	return nil, fmt.Errorf("%w: record %s has no field %s", ErrNoField, n.Name, path[at].Name)
}

// union goes on in each branch in which the path can. In the others a record has no such field.
func (c *compiler) union(
	n *avro.SchemaNode, namespace string, path jsonpath.Path, at int,
) (*finder, error) {
	f := &finder{kind: findUnion}
	var refused error
	led := false
	for i := range n.Branches {
		branch := &n.Branches[i]
		if branch.Type == "null" {
			null := &finder{kind: findNull}
			if at < len(path) {
				null.kind = findNothing
			}
			f.options = append(f.options, null)
			continue
		}
		inner, err := c.finder(branch, namespace, path, at)
		switch {
		case errors.Is(err, ErrNoField):
			inner = &finder{kind: findNothing}
		case errors.Is(err, ErrNoID):
			inner = &finder{kind: findText, text: text{kind: textNone}}
		case err != nil:
			return nil, err
		default:
			led = true
		}
		if err != nil && refused == nil {
			refused = err
		}
		f.options = append(f.options, inner)
	}
	if !led && refused != nil {
		return nil, refused
	}
	return f, nil
}

func article(kind string) string {
	if slices.Contains([]string{"int", "enum", "array"}, kind) {
		return "an " + kind
	}
	return "a " + kind
}
