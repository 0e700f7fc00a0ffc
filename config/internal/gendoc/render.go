package main

import (
	"bytes"
	_ "embed"
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/kdedup/kdedup/config"
)

//go:embed intro.txt
var intro string

// section is one struct and the places of the file where it stands.
type section struct {
	structure reflect.Type
	defaults  reflect.Value
	paths     []string
}

func render(m manual) ([]byte, error) {
	out := bytes.NewBufferString(intro)
	var sections []*section
	sections = gather(sections, "", reflect.ValueOf(config.Default()))
	for _, s := range sections {
		if err := s.render(out, m); err != nil {
			return nil, err
		}
	}
	return out.Bytes(), nil
}

// gather appends the struct and those inside it, in the order of the file, each struct once.
func gather(sections []*section, path string, defaults reflect.Value) []*section {
	for _, known := range sections {
		if known.structure == defaults.Type() {
			known.paths = append(known.paths, path)
			return sections
		}
	}
	sections = append(sections, &section{defaults.Type(), defaults, []string{path}})
	for field, value := range defaults.Fields() {
		key := field.Tag.Get("mapstructure")
		inner := join(path, key)
		switch {
		case key == "-": // not of the file
		case field.Type.Kind() == reflect.Struct:
			sections = gather(sections, inner, value)
		case field.Type == reflect.TypeFor[[]config.Topic]():
			sections = gather(sections, inner+"[]", reflect.ValueOf(config.DefaultTopic()))
		case isList(field.Type):
			sections = gather(sections, inner+"[]", reflect.Zero(field.Type.Elem()))
		}
	}
	return sections
}

func join(path, key string) string { return strings.TrimPrefix(path+"."+key, ".") }

// isList reports whether t is a list of structs.
func isList(t reflect.Type) bool {
	return t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Struct
}

func (s *section) title() string {
	if s.paths[0] == "" {
		return "Top level"
	}
	return "`" + strings.Join(s.paths, "`, `") + "`"
}

func (s *section) render(out *bytes.Buffer, m manual) error {
	fmt.Fprintf(out, "\n## %s\n\n%s\n", s.title(), m[s.structure.Name()])
	for field, value := range s.defaults.Fields() {
		key := field.Tag.Get("mapstructure")
		if key == "-" || field.Type.Kind() == reflect.Struct { // a struct has a section
			continue
		}
		e, err := m.entry(s.structure.Name(), field.Name)
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "\n### `%s`\n\n%s%s\n", join(s.paths[0], key), facts(value, e), e.text)
	}
	return nil
}

// facts is the line of type and default, empty for a text without one. The introduction of the
// document tells what a setting is called in the environment, and what a line leaves out.
func facts(value reflect.Value, e entry) string {
	kind, fallback := typeName(value.Type()), defaultText(value, e)
	switch {
	case kind != "text" && fallback != "":
		return kind + "; " + fallback + "\n\n"
	case kind != "text":
		return kind + "\n\n"
	case fallback != "":
		return fallback + "\n\n"
	}
	return ""
}

func typeName(t reflect.Type) string {
	switch {
	case t == reflect.TypeFor[time.Duration]():
		return "duration"
	case t == reflect.TypeFor[config.Bytes]():
		return "size"
	case t == reflect.TypeFor[config.Secret]():
		return "secret"
	case isList(t):
		return "mappings"
	case t.Kind() == reflect.Slice:
		return "list"
	case t.Kind() == reflect.Int:
		return "number"
	case t.Kind() == reflect.Float64:
		return "number"
	case t.Kind() == reflect.Bool:
		return "boolean"
	default:
		return "text"
	}
}

func defaultText(value reflect.Value, e entry) string {
	switch {
	case e.required:
		return "required"
	case e.fallback != "":
		return "default: " + e.fallback
	case value.Kind() == reflect.Slice || value.Kind() == reflect.String && value.Len() == 0:
		return ""
	}
	if d, ok := value.Interface().(time.Duration); ok {
		return "default: `" + short(d) + "`"
	}
	return fmt.Sprintf("default: `%v`", value.Interface())
}

// short leaves out the zero minutes and seconds with which a time.Duration ends.
func short(d time.Duration) string {
	text := d.String()
	for _, zero := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(text, zero) {
			text = text[:len(text)-2]
		}
	}
	return text
}
