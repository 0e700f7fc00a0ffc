package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"go/ast"
	"go/token"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/kdedup/kdedup/config"
)

type object = map[string]any

// schemas makes the JSON Schema of the file, with the manual as its descriptions.
type schemas struct {
	manual manual
	words  map[string][]string // by type: what a setting of the type may be
}

// generateSchema returns the file config/schema.json.
func generateSchema(source string) ([]byte, error) {
	var s schemas
	var err error
	if s.manual, err = readManual(source); err != nil {
		return nil, err
	}
	if s.words, err = readWords(source); err != nil {
		return nil, err
	}
	root := s.of(reflect.TypeFor[config.Config]())
	root["$schema"] = "http://json-schema.org/draft-07/schema#"
	root["title"] = "kdedup.yaml"
	root["patternProperties"] = object{"^x-": object{}}
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	err = encoder.Encode(root)
	return text.Bytes(), err
}

func (s *schemas) of(t reflect.Type) object {
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
			"items": object{"$ref": "#/properties/topics/items/properties/message_id"}}
	case t.Kind() == reflect.Slice:
		return object{"type": "array", "items": s.of(t.Elem())}
	}
	properties := object{}
	for field := range t.Fields() {
		key := field.Tag.Get("mapstructure")
		if key == "-" {
			continue
		}
		property := s.of(field.Type)
		property["description"] = strings.Join(
			strings.Fields(s.manual[t.Name()+"."+field.Name]), " ")
		if words := s.wordsOf(t, field); len(words) > 0 {
			property["anyOf"] = []object{{"enum": words}, {"pattern": reference}}
		}
		outer, inner, within := strings.Cut(key, ".") // input.pattern, in the place of a name
		if within {
			either := properties[outer].(object)
			either["type"] = []string{"string", "object"}
			either["additionalProperties"] = false
			either["properties"] = object{inner: property}
			continue
		}
		properties[key] = property
	}
	kinds := any("object")
	if t == reflect.TypeFor[config.Fingerprint]() {
		kinds = []string{"object", "string"} // the one word
	}
	return object{"type": kinds, "additionalProperties": false, "properties": properties}
}

// wordsOf are those of the words of a topic's setting that the setting takes: on_replay is no
// place for all that the other settings of its type take.
func (s *schemas) wordsOf(t reflect.Type, field reflect.StructField) (words []string) {
	if t != reflect.TypeFor[config.Topic]() {
		return nil
	}
	for _, word := range s.words[field.Type.Name()] {
		topic := config.DefaultTopic()
		reflect.ValueOf(&topic).Elem().FieldByIndex(field.Index).SetString(word)
		if takes(topic, "topics[0]."+field.Tag.Get("mapstructure")) {
			words = append(words, word)
		}
	}
	return words
}

func takes(topic config.Topic, path string) bool {
	c := config.Default()
	c.Topics = []config.Topic{topic}
	problems, ok := c.Validate().(interface{ Unwrap() []error })
	if !ok {
		return true
	}
	return !slices.ContainsFunc(problems.Unwrap(), func(err error) bool {
		var problem *config.Error
		return errors.As(err, &problem) && problem.Path == path
	})
}

// readWords reads the constants that have a type of their own, by its name.
func readWords(folder string) (map[string][]string, error) {
	words := make(map[string][]string)
	err := eachDeclaration(folder, func(g *ast.GenDecl) {
		if g.Tok != token.CONST {
			return
		}
		for _, spec := range g.Specs {
			constant := spec.(*ast.ValueSpec)
			name, typed := constant.Type.(*ast.Ident)
			if !typed {
				continue
			}
			for _, value := range constant.Values {
				if text, isText := value.(*ast.BasicLit); isText && text.Kind == token.STRING {
					word, _ := strconv.Unquote(text.Value)
					words[name.Name] = append(words[name.Name], word)
				}
			}
		}
	})
	return words, err
}
