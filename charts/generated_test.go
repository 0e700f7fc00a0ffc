package charts

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

var update = flag.Bool("update", false, "write what is made from the chart again")

// value is one entry of values.yaml that has a comment, its manual.
type value struct {
	path, manual string
	fallback     string // as JSON
}

func readValues(t *testing.T) []value {
	t.Helper()
	var document yaml.Node
	if err := yaml.Unmarshal(read(t, "kdedup/values.yaml"), &document); err != nil {
		t.Fatal(err)
	}
	return commented(t, document.Content[0], "")
}

// commented lists the entries in the order of the file. A mapping without a comment is a group; its
// entries have one.
func commented(t *testing.T, node *yaml.Node, path string) []value {
	t.Helper()
	var all []value
	for i := 0; i+1 < len(node.Content); i += 2 {
		key, content := node.Content[i], node.Content[i+1]
		inner := strings.TrimPrefix(path+"."+key.Value, ".")
		switch {
		case key.HeadComment != "":
			all = append(all, value{inner, manualOf(key.HeadComment), jsonOf(t, content)})
		case content.Kind == yaml.MappingNode && len(content.Content) > 0:
			all = append(all, commented(t, content, inner)...)
		default:
			t.Errorf("values.yaml: %s has no comment; write its manual", inner)
		}
	}
	return all
}

// manualOf is the last paragraph of a comment as one line; what stands before it is about the file.
func manualOf(comment string) string {
	paragraphs := strings.Split(comment, "\n\n")
	lines := strings.Split(paragraphs[len(paragraphs)-1], "\n")
	for i, line := range lines {
		lines[i] = strings.TrimSpace(strings.TrimPrefix(line, "#"))
	}
	return strings.Join(lines, " ")
}

func jsonOf(t *testing.T, node *yaml.Node) string {
	t.Helper()
	var content any
	if err := node.Decode(&content); err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(encode(t, content, "")))
}

func encode(t *testing.T, content any, indent string) []byte {
	t.Helper()
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", indent)
	if err := encoder.Encode(content); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// keep compares a file with what it should be, or writes it with -update.
func keep(t *testing.T, path string, want []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(read(t, path), want) {
		t.Errorf("%s does not say what the chart and package config say; run: make chart-docs", path)
	}
}

const tableBegin, tableEnd = "<!-- values: made by make chart-docs from values.yaml -->\n",
	"<!-- end of values -->\n"

func TestTheReadmeListsTheValues(t *testing.T) {
	const path = "kdedup/README.md"
	before, rest, found := strings.Cut(string(read(t, path)), tableBegin)
	_, after, ended := strings.Cut(rest, tableEnd)
	if !found || !ended {
		t.Fatalf("%s lacks the comments around the table of values", path)
	}
	table := "\n| Value | Default | Meaning |\n|---|---|---|\n"
	for _, v := range readValues(t) {
		table += "| `" + v.path + "` | `" + v.fallback + "` | " + strings.ReplaceAll(v.manual, "|",
			"\\|") + " |\n"
	}
	keep(t, path, []byte(before+tableBegin+table+"\n"+tableEnd+after))
}
