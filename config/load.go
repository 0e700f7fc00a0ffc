package config

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"strings"

	"github.com/go-viper/mapstructure/v2"
	"github.com/spf13/viper"
	"go.yaml.in/yaml/v3"
)

// Load reads the YAML file at path, replaces ${NAME} in its values, applies the overrides in env
// (in the form of os.Environ), fills in the defaults and validates the result. Its error names
// everything that is wrong; errors.As finds each as *Error. An unreadable file is an *fs.PathError.
func Load(path string, env []string) (Config, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return Config{}, fmt.Errorf("read config: %w", err)
	}
	c, _, err := Parse(path, data, env)
	return c, err
}

// Places says where values came from, by the paths of their settings: "line 9" of the file, or an
// environment variable. A default has no place.
type Places map[string]string

// Parse is Load of what was read already. The name stands in its errors.
func Parse(name string, data []byte, env []string) (Config, Places, error) {
	p := &problems{places: map[string]string{}}
	c := parse(data, environment(env), p)
	switch len(p.found) {
	case 0:
		return c, p.places, nil
	case 1:
		return Config{}, nil, fmt.Errorf("config %s: %w", name, p.err())
	default:
		return Config{}, nil, fmt.Errorf("config %s: %d problems\n%w", name, len(p.found), p.err())
	}
}

// parse reports to p everything that is wrong. It goes on after a wrong value, so that one run
// shows all errors, and stops only when there is no usable tree.
func parse(data []byte, env map[string]string, p *problems) Config {
	root, ok := readTree(data, p)
	if !ok {
		return Config{}
	}
	newTreeCheck(p).mapping(root, reflect.TypeFor[Config](), "")
	settings, err := readSettings(data)
	if err != nil {
		if len(p.found) == 0 { // else it is about keys that stand twice, and reported
			p.add("", "", "%s", withoutPrefix(err))
		}
		return Config{}
	}
	liftPatterns(settings)
	unknown, numbered := override(settings, env, p)
	c := decode(settings, env, p).Derived()
	c.UnknownEnv = unknown
	for name, at := range numbered {
		if c.NumberedEnv == nil {
			c.NumberedEnv = make(map[string]string)
		}
		c.NumberedEnv[name] = cmp.Or(c.Topics[at].Input, c.Topics[at].Pattern)
	}
	c.check(p)
	return c
}

// readTree parses the YAML for its lines and tags, which viper's maps no longer have. The node of
// an empty file is an empty mapping.
func readTree(data []byte, p *problems) (root *yaml.Node, ok bool) {
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	var document, second yaml.Node
	err := decoder.Decode(&document)
	if errors.Is(err, io.EOF) || err == nil && isNull(document.Content[0]) {
		return &yaml.Node{Kind: yaml.MappingNode}, true
	}
	if err == nil && document.Content[0].Kind != yaml.MappingNode {
		err = fmt.Errorf("line %d: must be a mapping of keys to values", document.Content[0].Line)
	}
	if err == nil && !errors.Is(decoder.Decode(&second), io.EOF) {
		err = errors.New("must hold one YAML document; remove what follows the second ---")
	}
	if err != nil {
		p.add("", "", "%s", withoutPrefix(err))
		return nil, false
	}
	return document.Content[0], true
}

// readSettings has viper read the file. The delimiter is a byte that no key in use contains, so
// that viper takes a key with dots for one key. Viper lower-cases keys; treeCheck has refused
// those by then, as everything else that viper would let pass.
func readSettings(data []byte) (map[string]any, error) {
	v := viper.NewWithOptions(viper.KeyDelimiter("\x00"))
	v.SetConfigType("yaml")
	if err := v.ReadConfig(bytes.NewReader(data)); err != nil {
		return nil, err
	}
	return v.AllSettings(), nil
}

// decode lays the settings over the defaults.
func decode(settings map[string]any, env map[string]string, p *problems) Config {
	p.variables = newExpander(env)
	c := Default()
	entries, _ := settings["topics"].([]any)
	for i, entry := range entries {
		c.Topics = append(c.Topics, entryDefault(entry, fmt.Sprintf("topics[%d]", i), p))
	}
	decoder, err := mapstructure.NewDecoder(&mapstructure.DecoderConfig{
		Result:     &c,
		DecodeHook: textHook(p.variables),
		MatchName:  func(key, field string) bool { return key == field },
	})
	if err == nil {
		err = decoder.Decode(settings)
	}
	collect(err, p)
	return c
}

// collect reports the errors in mapstructure's tree; those of textHook are ours and lack a path.
func collect(err error, p *problems) {
	switch e := err.(type) {
	case nil:
	case *mapstructure.DecodeError:
		found := &Error{Problem: e.Unwrap().Error()}
		errors.As(err, &found)
		found.Path = e.Name()
		p.addError(found)
	case interface{ Unwrap() []error }:
		for _, inner := range e.Unwrap() {
			collect(inner, p)
		}
	case interface{ Unwrap() error }:
		collect(e.Unwrap(), p)
	default:
		p.add("", "", "%s", err)
	}
}

// withoutPrefix is the text of a YAML error in the form of ours: "line 3: ...".
func withoutPrefix(err error) string {
	if inner := errors.Unwrap(err); inner != nil {
		err = inner
	}
	text := strings.TrimPrefix(err.Error(), "yaml: ")
	return strings.TrimPrefix(text, "unmarshal errors:\n  ")
}
