package proposal

import (
	"bytes"
	"encoding/json"
	"strings"
	"unicode/utf8"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/dedup/messageid"
	"github.com/kdedup/kdedup/internal/jsonpath"
)

// Place is where a record may carry its ID, as the configuration names it.
type Place struct{ From, Name, Path, Part string }

// Source is the place for an extractor.
func (p Place) Source() messageid.Source {
	return messageid.Source{From: p.From, Name: p.Name, Path: p.Path, Part: p.Part}
}

// String is the place for people.
func (p Place) String() string {
	switch {
	case p.From == "header":
		return "header " + p.Name
	case p.From == "json" && p.Part == messageid.PartKey:
		return "JSON field " + p.Path + " of the key"
	case p.From == "json":
		return "JSON field " + p.Path
	case p.From == "value_hash":
		return "the hash of the value"
	}
	return p.From
}

// ofValue reports whether a tombstone lacks the place whatever its producer does.
func (p Place) ofValue() bool {
	return p.From == "json" && p.Part != messageid.PartKey || p.From == "value_hash"
}

// Finder knows one kind of place. It tells only which places a record has: what stands there is the
// extractor's to say, so that nothing is proposed that kdedup would read otherwise.
type Finder interface {
	Find(r *kgo.Record, found func(Place))
}

// Finders are all that there are.
func Finders() []Finder {
	return []Finder{headers{}, wholeKey{}, fields{}, fields{ofKey: true}}
}

type headers struct{}

func (headers) Find(r *kgo.Record, found func(Place)) {
	for _, h := range r.Headers {
		if h.Key != "" && utf8.ValidString(h.Key) {
			found(Place{From: "header", Name: h.Key})
		}
	}
}

type wholeKey struct{}

func (wholeKey) Find(r *kgo.Record, found func(Place)) {
	if len(r.Key) > 0 {
		found(Place{From: "key"})
	}
}

// fields are those of a JSON document.
type fields struct{ ofKey bool }

const (
	mostLevels    = 8 // of objects in each other
	mostDocuments = 2 // of documents in strings of each other
)

// Find leaves out the elements of arrays: an ID is seldom at one place of a list.
func (f fields) Find(r *kgo.Record, found func(Place)) {
	doc, part := r.Value, ""
	if f.ofKey {
		doc, part = r.Key, messageid.PartKey
	}
	object, ok := document(doc)
	if !ok {
		return
	}
	eachField(object, "", mostLevels, mostDocuments, func(path string, value any) {
		switch value.(type) {
		case string, json.Number:
			found(Place{From: "json", Path: path, Part: part})
		}
	})
}

// document reads an object, also behind the five bytes of a schema registry and a byte order mark.
func document(text []byte) (object map[string]any, ok bool) {
	const framing = 5
	if len(text) > framing && text[0] == 0 {
		text = text[framing:]
	}
	text = bytes.TrimPrefix(text, []byte("\xEF\xBB\xBF"))
	if start := bytes.TrimLeft(text, " \t\r\n"); len(start) == 0 || start[0] != '{' {
		return nil, false
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber() // as they are written
	return object, decoder.Decode(&object) == nil
}

// eachField visits what is no object, with its path. A string that holds a document is visited, and
// so are the fields in it.
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
			if inner, ok := document([]byte(text)); ok {
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
	_, err := jsonpath.Parse(path)
	return err == nil
}
