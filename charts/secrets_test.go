package charts

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/kdedup/kdedup/config"
)

// secrets are the paths of all settings that are secrets; [0] is the first entry of a list. Within
// is what the type is a part of: a message_id has parts, which have parts.
func secrets(t reflect.Type, path string, within ...reflect.Type) (found []string) {
	switch {
	case t == reflect.TypeFor[config.Secret]():
		return []string{path}
	case t.Kind() == reflect.Slice:
		return secrets(t.Elem(), path+"[0]", within...)
	case t.Kind() == reflect.Pointer:
		return secrets(t.Elem(), path, within...)
	case t.Kind() != reflect.Struct || slices.Contains(within, t):
		return nil
	}
	within = append(slices.Clone(within), t)
	for f := range t.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("mapstructure"), ",")
		if name == "" || name == "-" {
			continue
		}
		found = append(found, secrets(f.Type, strings.TrimPrefix(path+"."+name, "."),
			within...)...)
	}
	return found
}

// valueAt is values with a text at a path.
func valueAt(path, text string) map[string]any {
	var node any = text
	steps := strings.Split(path, ".")
	for i := len(steps) - 1; i >= 0; i-- {
		name, isList := strings.CutSuffix(steps[i], "[0]")
		if isList {
			node = []any{node}
		}
		node = map[string]any{name: node}
	}
	return map[string]any{"config": node}
}

// A ConfigMap is read by whoever may look at the namespace.
func TestASecretThatIsWrittenOutIsRefused(t *testing.T) {
	paths := secrets(reflect.TypeFor[config.Config](), "")
	if len(paths) < 10 {
		t.Fatalf("found only %v", paths)
	}
	for _, path := range paths {
		for _, text := range []string{"hunter2", "$${NAME}", "12"} {
			_, err := render(loadChart(t), "shop", valueAt(path, text))
			if want := fmt.Sprintf("config.%s must not be written out", path); err == nil ||
				!strings.Contains(err.Error(), want) {
				t.Errorf("%s: %s: got %v", path, text, err)
			}
		}
		for _, text := range []string{"", "${NAME}", "file:/run/secret", "Bearer ${TOKEN}"} {
			_, err := render(loadChart(t), "shop", valueAt(path, text))
			if err == nil || strings.Contains(err.Error(), "written out") {
				t.Errorf("%s: %q: got %v, want only what else is missing", path, text, err)
			}
		}
	}
}
