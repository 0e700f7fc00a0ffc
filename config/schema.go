package config

import (
	"iter"
	"reflect"
	"strings"

	"github.com/kdedup/kdedup/internal/editdistance"
)

// keys yields the settings of a struct with their names in the file, in the order of the struct.
func keys(t reflect.Type) iter.Seq2[string, reflect.StructField] {
	return func(yield func(string, reflect.StructField) bool) {
		for field := range t.Fields() {
			if key := field.Tag.Get("mapstructure"); key != "-" && !yield(key, field) {
				return
			}
		}
	}
}

func keysOf(t reflect.Type) []string {
	var names []string
	for key := range keys(t) {
		names = append(names, key)
	}
	return names
}

func fieldOf(t reflect.Type, name string) (reflect.StructField, bool) {
	for key, field := range keys(t) {
		if key == name {
			return field, true
		}
	}
	return reflect.StructField{}, false
}

// join appends a key to a path.
func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

// didYouMean is the remedy for a name that is close to one of the known ones, or empty.
func didYouMean(name string, known []string) string {
	best, limit := "", max(1, len(name)/3)
	for _, candidate := range known {
		if d := editdistance.Between(plain(name), plain(candidate)); d <= limit && candidate != "" {
			best, limit = candidate, d-1
		}
	}
	if best == "" {
		return ""
	}
	return "did you mean " + best + "?"
}

// plain takes away what people write differently: case, dashes and underscores.
func plain(name string) string {
	return strings.ToLower(strings.NewReplacer("_", "", "-", "").Replace(name))
}
