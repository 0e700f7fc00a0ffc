package jsonpath

import (
	"bytes"
	"encoding/json"
	"strings"
	"unicode/utf8"
)

// Object reads an object, also behind the five bytes of a schema registry and a byte order mark.
// Numbers are as they are written (json.Number).
func Object(text []byte) (object map[string]any, ok bool) {
	const framing = 5
	if len(text) > framing && text[0] == 0 {
		text = text[framing:]
	}
	text = bytes.TrimPrefix(text, []byte("\xEF\xBB\xBF"))
	if start := bytes.TrimLeft(text, " \t\r\n"); len(start) == 0 || start[0] != '{' {
		return nil, false
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	return object, decoder.Decode(&object) == nil
}

// mostLevels bounds how deep EachField looks into objects in each other.
const mostLevels = 8

// EachField visits what is no object, with its path. With more than one document, a string that
// holds one is visited, and so are the fields in it.
func EachField(object map[string]any, documents int, visit func(path string, value any)) {
	eachField(object, "", mostLevels, documents, visit)
}

func eachField(
	object map[string]any, prefix string, levels, documents int,
	visit func(path string, value any),
) {
	for name, value := range object {
		path := prefix + escaped(name)
		// a name that is no text cannot stand in a file, and encoding/json has replaced its bytes
		if name == "" || strings.ContainsRune(name, utf8.RuneError) || !names(path) {
			continue
		}
		inner, nested := value.(map[string]any)
		if nested && levels > 0 {
			eachField(inner, path+".", levels-1, documents, visit)
			continue
		}
		visit(path, value)
		if text, isText := value.(string); isText && documents > 1 {
			if inner, ok := Object([]byte(text)); ok {
				eachField(inner, path+"|json.", levels, documents-1, visit)
			}
		}
	}
}

var escapes = strings.NewReplacer(`\`, `\\`, `.`, `\.`, `[`, `\[`, `]`, `\]`, `|`, `\|`)

// escaped is a name within a path.
func escaped(name string) string {
	text := escapes.Replace(name)
	if strings.HasPrefix(text, "$") {
		text = `\` + text
	}
	return text
}

func names(path string) bool {
	_, err := Parse(path)
	return err == nil
}

// Texts are the fields of an object as JSON, by their paths. It is false for what is none.
func Texts(doc []byte) (map[string]string, bool) {
	object, ok := Object(doc)
	if !ok {
		return nil, false
	}
	all := make(map[string]string)
	EachField(object, 1, func(path string, value any) {
		text, err := json.Marshal(value)
		if ok = ok && err == nil; ok {
			all[path] = string(text)
		}
	})
	return all, ok
}
