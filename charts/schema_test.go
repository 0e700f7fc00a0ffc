package charts

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

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
	c := schemaOf(readManual(t), reflect.TypeFor[config.Config]())
	c["patternProperties"] = object{"^x-": object{}}
	properties["config"] = c
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
		if name == "config" || name == "affinity" || name == "resources" || !isGroup {
			continue
		}
		for key, entry := range inner {
			if entry.(object)["description"] == nil {
				t.Errorf("values.yaml lacks %s.%s", name, key)
			}
		}
	}
}

// schemaOf is the schema of a type of package config. Every single value may be a text with
// ${NAME}.
func schemaOf(manual map[string]string, t reflect.Type) object {
	const reference = `\$\{.+\}`
	switch {
	case t == reflect.TypeFor[time.Duration]():
		return object{"type": "string", "pattern": `^([0-9]+d)?([0-9.]+(ns|us|µs|ms|s|m|h))*$|` +
			reference}
	case t == reflect.TypeFor[config.Bytes]():
		return object{"type": []string{"integer", "string"},
			"pattern": `^[0-9]+ ?([KMG]iB|kB|MB|GB|B)?$|` + reference}
	case t.Kind() == reflect.Bool:
		return object{"type": []string{"boolean", "string"}, "pattern": `^(true|false)$|` +
			reference}
	case t.Kind() == reflect.Int:
		return object{"type": []string{"integer", "string"}, "pattern": `^[0-9]+$|` + reference}
	case t.Kind() == reflect.Float64:
		return object{"type": []string{"number", "string"}, "pattern": `^[0-9.]+$|` + reference}
	case t.Kind() == reflect.String:
		return object{"type": "string"}
	case t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.String:
		return object{"type": []string{"array", "string"}, "items": object{"type": "string"}}
	case t.Kind() == reflect.Slice && t.Elem() == reflect.TypeFor[config.MessageID]():
		return object{"type": "array",
			"items": object{
				"$ref": "#/properties/config/properties/topics/items/properties/message_id"}}
	case t.Kind() == reflect.Slice:
		return object{"type": "array", "items": schemaOf(manual, t.Elem())}
	}
	properties := object{}
	for field := range t.Fields() {
		if key := field.Tag.Get("mapstructure"); key != "-" {
			entry := schemaOf(manual, field.Type)
			entry["description"] = manual[t.Name()+"."+field.Name]
			properties[key] = entry
		}
	}
	return object{"type": "object", "additionalProperties": false, "properties": properties}
}

// readManual returns the comments of the fields in package config, "Topic.TTL", each as one line.
func readManual(t *testing.T) map[string]string {
	t.Helper()
	files, err := filepath.Glob("../config/*.go")
	if err != nil || len(files) == 0 {
		t.Fatalf("no source of package config: %v", err)
	}
	manual := map[string]string{}
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if spec, ok := n.(*ast.TypeSpec); ok {
				addFields(manual, spec)
			}
			return true
		})
	}
	return manual
}

func addFields(manual map[string]string, spec *ast.TypeSpec) {
	structure, ok := spec.Type.(*ast.StructType)
	if !ok {
		return
	}
	for _, field := range structure.Fields.List {
		for _, name := range field.Names {
			manual[spec.Name.Name+"."+name.Name] = strings.Join(strings.Fields(field.Doc.Text()),
				" ")
		}
	}
}
