package config

import (
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
// topics[0].ttl. Only single values and lists of text have one.
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

// override puts the values of KDEDUP_ variables into the settings and notes in places where they
// came from. An empty variable counts as not set. It returns the names that match no setting.
func override(
	settings map[string]any, env map[string]string, places map[string]string,
) (unknown []string) {
	for _, name := range slices.Sorted(maps.Keys(env)) {
		rest, ours := strings.CutPrefix(name, envPrefix)
		if !ours || name == EnvFile {
			continue
		}
		route, known := find(reflect.TypeFor[Config](), rest, settings)
		if !known {
			unknown = append(unknown, name)
		} else if env[name] != "" {
			// a value from the environment is taken as it is
			put(settings, route, escape(env[name]))
			places[pathOf(route)] = name
		}
	}
	return unknown
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
