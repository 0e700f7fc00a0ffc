package config

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

const (
	envPrefix = "KDEDUP_"
	// EnvFile names the file where the command line does not.
	EnvFile = envPrefix + "CONFIG"
)

// EnvName is the environment variable that overrides the setting at path: KDEDUP_TOPICS_0_TTL for
// topics[0].ttl. Only single values and lists of text have one. Of an entry of topics the input may
// stand in the place of the number, see NamedEnv.
func EnvName(path string) string {
	return envPrefix + strings.ToUpper(strings.NewReplacer(".", "_", "[", "_", "]",
		"").Replace(path))
}

// environment is os.Environ as a map.
func environment(env []string) map[string]string {
	variables := make(map[string]string, len(env))
	for _, entry := range env {
		if name, value, ok := strings.Cut(entry, "="); ok {
			variables[name] = value
		}
	}
	return variables
}

// override puts the values of KDEDUP_ variables into the settings and notes in p's places where
// they came from. An empty variable counts as not set. It returns the names that match no setting,
// and those that name an entry of topics by its number, with that.
func override(
	settings map[string]any, env map[string]string, p *problems,
) (unknown []string, numbered map[string]int) {
	var others []string
	numbered = make(map[string]int)
	for _, name := range slices.Sorted(maps.Keys(env)) {
		rest, ours := strings.CutPrefix(name, envPrefix)
		if !ours || name == EnvFile {
			continue
		}
		route, known := find(reflect.TypeFor[Config](), rest, settings)
		if !known {
			others = append(others, name)
			continue
		}
		if route[0] == "topics" && env[name] != "" {
			numbered[name] = route[1].(int)
		}
		set(settings, route, env, name, p)
	}
	// Those that name an input come second: another variable may have set it.
	for _, name := range others {
		route, known := findByInput(name, settings, env, p)
		if !known {
			unknown = append(unknown, name)
		} else if route != nil {
			set(settings, route, env, name, p)
		}
	}
	return unknown, numbered
}

// set takes a value from the environment as it is.
func set(
	settings map[string]any, route []any, env map[string]string, name string, p *problems,
) {
	if env[name] == "" {
		return
	}
	path := pathOf(route)
	if earlier := p.places[path]; strings.HasPrefix(earlier, envPrefix) {
		p.addError(&Error{Path: path, Place: name, Problem: "is set by " + earlier + ", too",
			Remedy: "unset one of the two"})
		return
	}
	put(settings, route, escape(env[name]))
	maps.DeleteFunc(p.places, func(inner, _ string) bool { // what the file has there
		return inner != path && covers(path, inner)
	})
	p.places[path] = name
}

// findByInput is find for a name that has an input in the place of the entry's number. A name that
// fits several entries is reported, and leads nowhere.
func findByInput(
	name string, settings map[string]any, env map[string]string, p *problems,
) (route []any, known bool) {
	rest, ofTopics := strings.CutPrefix(name, envPrefix+topicsPart)
	if !ofTopics {
		return nil, false
	}
	entries, _ := settings["topics"].([]any)
	var routes [][]any
	for i, entry := range entries {
		fields, _ := entry.(map[string]any)
		input, _ := fields["input"].(string)
		if text, err := newExpander(env).expand(input); err == nil {
			input = text
		}
		tail, fits := strings.CutPrefix(rest, inVariable(input)+"_")
		if !fits || isNumber(inVariable(input)) {
			continue
		}
		if inner, found := find(reflect.TypeFor[Topic](), tail, fields); found {
			routes = append(routes, append([]any{"topics", i}, inner...))
		}
	}
	switch len(routes) {
	case 0:
		return nil, false
	case 1:
		return routes[0], true
	}
	p.addError(&Error{Place: name,
		Problem: fmt.Sprintf("may mean %s or %s", pathOf(routes[0]), pathOf(routes[1])),
		Remedy:  "write it into the file, or name the entry by its number"})
	return nil, true
}

const topicsPart = "TOPICS_"

// inVariable is the name of a topic as a variable may hold it: KDEDUP_TOPICS_ORDERS_V1_TTL is about
// the input orders.v1.
func inVariable(topic string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'A' && r <= 'Z', r >= '0' && r <= '9':
			return r
		case r >= 'a' && r <= 'z':
			return r - 'a' + 'A'
		}
		return '_'
	}, topic)
}

func isNumber(text string) bool { return strings.Trim(text, "0123456789") == "" }

// NamedEnv is a variable that names an entry by its number in the form that names its input.
func NamedEnv(numbered, input string) string {
	_, setting, _ := strings.Cut(strings.TrimPrefix(numbered, envPrefix+topicsPart), "_")
	return envPrefix + topicsPart + inVariable(input) + "_" + setting
}

// find returns the route to the single value or list of text that name stands for, of keys and
// indices. Entries of lists are found only if the tree has them.
func find(t reflect.Type, name string, tree any) (route []any, known bool) {
	node, _ := tree.(map[string]any)
	for key, field := range keys(t) {
		rest, match := strings.CutPrefix(name, strings.ToUpper(strings.ReplaceAll(key, ".", "_")))
		if !match {
			continue
		}
		if route, known = findIn(field.Type, rest, node[key]); known {
			return append([]any{key}, route...), true
		}
	}
	return nil, false
}

// findIn continues at one field; rest is what remains of the name.
func findIn(t reflect.Type, rest string, tree any) (route []any, known bool) {
	inner, deeper := strings.CutPrefix(rest, "_")
	switch {
	case t.Kind() == reflect.Struct:
		if deeper {
			return find(t, inner, tree)
		}
	case t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Struct:
		if deeper {
			return findEntry(t.Elem(), inner, tree)
		}
	default:
		return nil, rest == ""
	}
	return nil, false
}

func findEntry(t reflect.Type, name string, tree any) (route []any, known bool) {
	entries, _ := tree.([]any)
	digits, inner, _ := strings.Cut(name, "_")
	index, err := strconv.Atoi(digits)
	if err != nil || strconv.Itoa(index) != digits || index < 0 || index >= len(entries) {
		return nil, false
	}
	route, known = find(t, inner, entries[index])
	return append([]any{index}, route...), known
}

// put sets the value at the end of the route and returns the tree. Maps that are missing are made;
// the entries of lists exist, see find.
func put(tree any, route []any, value string) any {
	if len(route) == 0 {
		return value
	}
	switch step := route[0].(type) {
	case int:
		entries := tree.([]any)
		entries[step] = put(entries[step], route[1:], value)
	case string:
		node, ok := tree.(map[string]any)
		if !ok {
			node = map[string]any{}
		}
		node[step] = put(node[step], route[1:], value)
		return node
	}
	return tree
}

func pathOf(route []any) string {
	path := ""
	for _, step := range route {
		switch step := step.(type) {
		case int:
			path += "[" + strconv.Itoa(step) + "]"
		case string:
			path = join(path, step)
		}
	}
	return path
}
