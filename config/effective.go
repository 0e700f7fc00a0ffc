package config

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"
)

// Setting is one setting as it is in effect.
type Setting struct {
	Path    string // as in the manual, with the index of each entry: topics[0].ttl
	Value   string // as it could stand in the file; hidden if it is a secret, or the place of a key
	Default bool   // the value is the default
}

// Settings lists what is in effect, in the order of the manual. The settings of a store that is not
// in use are left out.
func (c Config) Settings() []Setting {
	var all []Setting
	walk(reflect.ValueOf(c), reflect.ValueOf(Default()), "",
		func(path string, value, normal reflect.Value) {
			if !c.unused(path) {
				all = append(all, Setting{path, settingText(path, value),
					reflect.DeepEqual(value.Interface(), normal.Interface())})
			}
		})
	return all
}

// Secrets lists what must never be shown: the secrets that are set, and the paths of the private
// keys.
func (c Config) Secrets() []string {
	var all []string
	walk(reflect.ValueOf(c), reflect.ValueOf(Default()), "",
		func(path string, value, _ reflect.Value) {
			if isHidden(path, value) && value.String() != "" {
				all = append(all, reflect.ValueOf(value.Interface()).String())
			}
		})
	slices.Sort(all)
	return slices.Compact(all)
}

func (c Config) unused(path string) bool {
	return strings.HasPrefix(path, "store.cassandra.") && c.Store.Type != StoreCassandra ||
		strings.HasPrefix(path, "store.cassandra.log.") && !c.Store.Logs() ||
		strings.HasPrefix(path, "store.redis.") && c.Store.Type != StoreRedis ||
		strings.HasPrefix(path, "store.postgres.") && c.Store.Type != StorePostgres ||
		strings.HasPrefix(path, "store.embedded.") && c.Store.Type != StoreEmbedded ||
		strings.HasPrefix(path, "store.keepers.") && !c.Store.Logs() ||
		strings.HasPrefix(path, "store.kafka.") && c.Store.Type != StoreKafka
}

// walk visits the single values and the lists of text, each with its default.
func walk(
	value, normal reflect.Value, path string, visit func(path string, value, normal reflect.Value),
) {
	for key, field := range keys(value.Type()) {
		inner, at := value.FieldByIndex(field.Index), join(path, key)
		same := normal.FieldByIndex(field.Index)
		switch {
		case inner.Kind() == reflect.Struct:
			walk(inner, same, at, visit)
		case inner.Kind() == reflect.Slice && inner.Type().Elem().Kind() == reflect.Struct:
			for i := range inner.Len() {
				walk(inner.Index(i), defaultEntry(inner.Type().Elem()),
					fmt.Sprintf("%s[%d]", at, i), visit)
			}
		default:
			visit(at, inner, same)
		}
	}
}

func defaultEntry(t reflect.Type) reflect.Value {
	if t == reflect.TypeFor[Topic]() {
		return reflect.ValueOf(DefaultTopic())
	}
	return reflect.Zero(t)
}

func isHidden(path string, value reflect.Value) bool {
	return value.Type() == reflect.TypeFor[Secret]() || strings.HasSuffix(path, ".key_file")
}

func settingText(path string, value reflect.Value) string {
	switch v := value.Interface().(type) {
	case []string:
		return strings.Join(v, ", ")
	case time.Duration:
		return v.String()
	default:
		if isHidden(path, value) && !value.IsZero() {
			return hidden
		}
		return fmt.Sprint(v)
	}
}
