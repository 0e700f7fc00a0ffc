package config

import (
	"fmt"
	"reflect"
	"regexp"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// treeCheck compares a YAML tree with the structs: keys must exist, stand once, and hold a value
// of a form that the field can take. Without it viper would ignore unknown keys, turn the password
// 0123 into the number 83 and take the duration 30 for nanoseconds.
type treeCheck struct {
	problems *problems
	visited  map[visit]bool // aliases can nest to any size: a node is checked once for each type
}

type visit struct {
	node *yaml.Node
	as   reflect.Type
}

func newTreeCheck(p *problems) *treeCheck {
	return &treeCheck{problems: p, visited: map[visit]bool{}}
}

// target follows an alias. It reports whether the node is still to be checked.
func (c *treeCheck) target(node *yaml.Node, t reflect.Type) (*yaml.Node, bool) {
	if node.Kind == yaml.AliasNode {
		node = node.Alias
	}
	visited := c.visited[visit{node, t}]
	c.visited[visit{node, t}] = true
	return node, !visited
}

// value checks a node against the type of its field.
func (c *treeCheck) value(node *yaml.Node, t reflect.Type, path string) {
	node, fresh := c.target(node, t)
	if !fresh || isNull(node) {
		return // null is like a missing key: the default holds
	}
	if _, set := c.problems.places[path]; !set {
		c.problems.places[path] = fmt.Sprintf("line %d", node.Line)
	}
	switch {
	case isFingerprintWord(node, t):
		c.problems.places[path+".of"] = c.problems.places[path]
	case t.Kind() == reflect.Struct:
		c.mapping(node, t, path)
	case t.Kind() == reflect.Slice:
		c.sequence(node, t, path)
	default:
		c.scalar(node, t, path)
	}
}

func (c *treeCheck) mapping(node *yaml.Node, t reflect.Type, path string) {
	if node.Kind != yaml.MappingNode {
		c.wrongForm(node, path, "a mapping with keys such as "+keysOf(t)[0])
		return
	}
	lines, merged := map[string]int{}, []*yaml.Node{}
	for i := 0; i+1 < len(node.Content); i += 2 {
		key, value := node.Content[i], node.Content[i+1]
		if key.Tag == "!!merge" {
			merged = append(merged, value)
		} else if c.isKey(key, lines, t, path) {
			c.value(value, typeOf(t, key.Value, value), join(path, key.Value))
		}
	}
	for _, node := range merged { // last, because the mapping's own keys win
		c.merge(node, t, path)
	}
}

// typeOf is that of a field, or of the form that may stand in its place.
func typeOf(t reflect.Type, key string, value *yaml.Node) reflect.Type {
	if value.Kind == yaml.AliasNode {
		value = value.Alias
	}
	if t == reflect.TypeFor[Topic]() && key == "input" && value.Kind == yaml.MappingNode {
		return reflect.TypeFor[inputForm]()
	}
	field, _ := fieldOf(t, key)
	return field.Type
}

// merge checks what << brings in: a mapping or a list of mappings of the same struct.
func (c *treeCheck) merge(node *yaml.Node, t reflect.Type, path string) {
	node, fresh := c.target(node, t)
	switch {
	case !fresh:
	case node.Kind == yaml.SequenceNode:
		for _, element := range node.Content {
			c.merge(element, t, path)
		}
	default:
		c.mapping(node, t, path)
	}
}

// isKey reports whether the key names a field of t; if not, it says so.
func (c *treeCheck) isKey(key *yaml.Node, lines map[string]int, t reflect.Type, path string) bool {
	place := fmt.Sprintf("line %d", key.Line)
	found := &Error{Path: join(path, shown(key.Value)), Place: place}
	_, known := fieldOf(t, key.Value)
	first, twice := lines[key.Value]
	lines[key.Value] = key.Line
	switch {
	case twice:
		found.Problem = fmt.Sprintf("set twice, first in line %d", first)
	case path == "" && strings.HasPrefix(key.Value, "x-"):
		return false // room for YAML anchors
	case !known || strings.Contains(key.Value, "."): // input.pattern is no key of the file
		found.Problem, found.Remedy = "unknown key", didYouMean(key.Value, keysOf(t))
	default:
		return true
	}
	c.problems.addError(found)
	return false
}

func (c *treeCheck) sequence(node *yaml.Node, t reflect.Type, path string) {
	ofText := t.Elem().Kind() == reflect.String
	if ofText && node.Kind == yaml.ScalarNode && node.Tag == "!!str" {
		return // a comma-separated list, perhaps through ${NAME}
	}
	if node.Kind != yaml.SequenceNode {
		c.wrongForm(node, path, "a list")
		return
	}
	for i, element := range node.Content {
		place := fmt.Sprintf("%s[%d]", path, i)
		if isNull(element) && ofText {
			c.wrongForm(element, place, "text")
			continue
		}
		c.value(element, t.Elem(), place)
	}
}

// scalar checks the YAML type. Text is good for every field: it may hold ${NAME}, and textHook
// reads it as what the field needs.
func (c *treeCheck) scalar(node *yaml.Node, t reflect.Type, path string) {
	fits := node.Kind == yaml.ScalarNode
	switch {
	case node.Tag == "!!str":
	case t == reflect.TypeFor[time.Duration]() || t.Kind() == reflect.String:
		fits = false
	case t.Kind() == reflect.Int && node.Tag != "!!int":
		fits = false // Decode would cut a fraction off
	default:
		fits = fits && node.Decode(reflect.New(t).Interface()) == nil
	}
	if !fits {
		c.wrongForm(node, path, formOf(t))
	}
}

// formOf names what a scalar field takes.
func formOf(t reflect.Type) string {
	switch {
	case t == reflect.TypeFor[time.Duration]():
		return "a duration such as 30s, 168h or 7d"
	case t == reflect.TypeFor[Bytes]():
		return "a size such as 16777216 or 16MiB"
	case t.Kind() == reflect.Int:
		return "a whole number"
	case t.Kind() == reflect.Float64:
		return "a number"
	case t.Kind() == reflect.Bool:
		return "true or false"
	default:
		return "text"
	}
}

func (c *treeCheck) wrongForm(node *yaml.Node, path, want string) {
	found := &Error{Path: path, Place: fmt.Sprintf("line %d", node.Line)}
	got := form(node)
	switch {
	case node.Kind != yaml.ScalarNode || isNull(node):
	case want == "text" && strings.HasPrefix(node.Tag, "!!"):
		found.Remedy = "put it in quotes"
	case want != "text" && node.Tag != "!!str":
		got = node.Value
	}
	found.Problem = fmt.Sprintf("must be %s, got %s", want, got)
	c.problems.addError(found)
}

// form names what a node is. It does not show the value: where text belongs, that may be a secret.
func form(node *yaml.Node) string {
	switch {
	case node.Kind == yaml.MappingNode:
		return "a mapping"
	case node.Kind == yaml.SequenceNode:
		return "a list"
	case isNull(node):
		return "nothing"
	case node.Tag == "!!int" || node.Tag == "!!float":
		return "a number"
	case node.Tag == "!!bool":
		return "true or false"
	case node.Tag == "!!timestamp":
		return "a date"
	case node.Tag == "!!str":
		return "text"
	default:
		return "a value tagged " + node.Tag
	}
}

func isNull(node *yaml.Node) bool {
	return node.Kind == yaml.ScalarNode && node.Tag == "!!null"
}

var plainKey = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)

// shown is a key as errors show it: quoted if it could be taken for a path.
func shown(key string) string {
	if plainKey.MatchString(key) {
		return key
	}
	return fmt.Sprintf("%q", key)
}
