package charts

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kdedup/kdedup/config"
)

type object = map[string]any

// The types in values.schema.json are written by hand. Its texts are those of values.yaml, and the
// part about the configuration follows from package config.
func TestTheSchemaIsUpToDate(t *testing.T) {
	const path = "kdedup/values.schema.json"
	var schema object
	if err := json.Unmarshal(read(t, path), &schema); err != nil {
		t.Fatal(err)
	}
	properties := schema["properties"].(object)
	properties["config"] = configSchema(t)
	for _, v := range readValues(t) {
		entry, ok := entryAt(properties, v.path)
		if !ok {
			t.Errorf("%s lacks %s", path, v.path)
			continue
		}
		entry["description"] = v.manual
	}
	keep(t, path, encode(t, schema, "  "))
}

// entryAt follows a path of values.yaml through the schema.
func entryAt(properties object, path string) (object, bool) {
	first, rest, deeper := strings.Cut(path, ".")
	entry, ok := properties[first].(object)
	if !ok || !deeper {
		return entry, ok
	}
	inner, ok := entry["properties"].(object)
	if !ok {
		return nil, false
	}
	return entryAt(inner, rest)
}

// A value that the schema has and values.yaml has not would have no default and no manual.
func TestTheSchemaHasNoOtherValues(t *testing.T) {
	var schema object
	if err := json.Unmarshal(read(t, "kdedup/values.schema.json"), &schema); err != nil {
		t.Fatal(err)
	}
	want := map[string]bool{"global": true, "enabled": true} // of parent charts
	for _, v := range readValues(t) {
		group, _, _ := strings.Cut(v.path, ".")
		want[group] = true
	}
	got := slices.Sorted(maps.Keys(schema["properties"].(object)))
	if diff := cmp.Diff(slices.Sorted(maps.Keys(want)), got); diff != "" {
		t.Errorf("values (-values.yaml +schema):\n%s", diff)
	}
	for name, property := range schema["properties"].(object) {
		inner, isGroup := property.(object)["properties"].(object)
		asKubernetes := []string{"config", "affinity", "resources", "lifecycle"}
		if slices.Contains(asKubernetes, name) || !isGroup {
			continue
		}
		for key, entry := range inner {
			if entry.(object)["description"] == nil {
				t.Errorf("values.yaml lacks %s.%s", name, key)
			}
		}
	}
}

// configSchema is that of the file, within that of the values.
func configSchema(t *testing.T) object {
	t.Helper()
	text := strings.ReplaceAll(string(config.Schema()), `"#/properties/`,
		`"#/properties/config/properties/`)
	var schema object
	if err := json.Unmarshal([]byte(text), &schema); err != nil {
		t.Fatal(err)
	}
	delete(schema, "$schema")
	delete(schema, "title")
	return schema
}
