package command

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
)

// recipe is what a page of docs/recipes has in its blocks.
type recipe struct {
	file     string // the configuration of the list of the pages, with the preset of this one
	settings string // that the preset stands for
	messages []recipeMessage
}

type recipeMessage struct {
	kind    string // first, copy or different
	Key     json.RawMessage
	Headers map[string]string
	Value   json.RawMessage
}

var recipeBlock = regexp.MustCompile("(?ms)^```([a-z ]+)\n(.*?)^```$")

func readRecipe(t *testing.T, preset string) (r recipe) {
	t.Helper()
	page, err := os.ReadFile(filepath.Join("..", "docs", "recipes", preset+".md"))
	if err != nil {
		t.Fatal(err)
	}
	r.file = recipeFile(t, preset)
	var first string
	for _, block := range recipeBlock.FindAllStringSubmatch(string(page), -1) {
		switch what, text := block[1], block[2]; what {
		case "yaml preset":
			r.settings = text
		case "json first", "json copy", "json different", "json copy changes",
			"json different changes":
			document := decodeDocument(t, text)
			if first == "" {
				first = text
			} else if strings.HasSuffix(what, " changes") {
				changes := document
				document = decodeDocument(t, first)
				change(document, changes)
			}
			// All come out in one form, so that equal values are equal byte for byte.
			whole, err := json.Marshal(document)
			if err != nil {
				t.Fatal(err)
			}
			m := recipeMessage{kind: strings.Fields(what)[1]}
			decoder := json.NewDecoder(bytes.NewReader(whole))
			decoder.DisallowUnknownFields()
			if err := decoder.Decode(&m); err != nil {
				t.Fatalf("%s.md: %v in\n%s", preset, err, text)
			}
			r.messages = append(r.messages, m)
		default:
			t.Fatalf("%s.md: the test does not know what a block %q is", preset, what)
		}
	}
	for _, kind := range []string{"first", "copy", "different"} {
		if !slices.ContainsFunc(r.messages, func(m recipeMessage) bool { return m.kind == kind }) {
			t.Fatalf("%s.md has no message %q", preset, kind)
		}
	}
	return r
}

// recipeFile is the configuration that the list of the pages has for all presets.
func recipeFile(t *testing.T, preset string) string {
	t.Helper()
	index, err := os.ReadFile("../docs/recipes/README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, block := range recipeBlock.FindAllStringSubmatch(string(index), -1) {
		if block[1] == "yaml" {
			return strings.Replace(block[2], "{preset: debezium}", "{preset: "+preset+"}", 1)
		}
	}
	t.Fatal("docs/recipes/README.md has no configuration")
	return ""
}

func decodeDocument(t *testing.T, text string) (document map[string]any) {
	t.Helper()
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber()
	if err := decoder.Decode(&document); err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	return document
}

// change makes changes to a document as RFC 7396 has it: null takes a field away.
func change(document, changes map[string]any) {
	for name, value := range changes {
		inner, isDocument := value.(map[string]any)
		outer, wasDocument := document[name].(map[string]any)
		switch {
		case value == nil:
			delete(document, name)
		case isDocument && wasDocument:
			change(outer, inner)
		default:
			document[name] = value
		}
	}
}

// record has a text as it is for the key, and a document as it stands in the page.
func (m recipeMessage) record(topic string) *kgo.Record {
	r := &kgo.Record{Topic: topic, Key: m.Key, Value: m.Value}
	var text string
	if json.Unmarshal(m.Key, &text) == nil {
		r.Key = []byte(text)
	}
	if string(m.Value) == "null" {
		r.Value = nil
	}
	for name, value := range m.Headers {
		r.Headers = append(r.Headers, kgo.RecordHeader{Key: name, Value: []byte(value)})
	}
	return r
}
