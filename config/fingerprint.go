package config

import (
	"fmt"
	"reflect"

	"go.yaml.in/yaml/v3"

	"github.com/kdedup/kdedup/internal/jsonpath"
)

// What of a record a fingerprint is of.
const (
	FingerprintAll  = "all"
	FingerprintNone = "none"
)

// Fingerprint says what of two records with equal IDs makes them the same content, and so a
// duplicate; otherwise the later one is a conflict, see `on_conflict`. `fingerprint: none` stands
// for `of: none`. It cannot be changed once a scope has claims.
type Fingerprint struct {
	// `all`: key and value, byte for byte, or the fields that `ignore` or `only` leave. `none`:
	// records with equal IDs are always the same.
	Of string `mapstructure:"of"`
	// Fields of a value that differ between copies, at most 32, written as `message_id.path` is,
	// but not within a string: `[ts_ms, "meta.attempt"]`. The key counts. A value that is not of
	// the `format` counts as a whole.
	Ignore []string `mapstructure:"ignore"`
	// The only fields of a value that count, beside the key. A value without one of them counts as
	// a whole. Not together with `ignore`.
	Only []string `mapstructure:"only"`
	// What the value is, with `ignore` and `only`: `json`, `avro` or `protobuf`. The last two need
	// `schema_registry`.
	//
	// Default: that of `message_id.format`, or of `message_id.from` if that is `avro` or `protobuf`
	// and looks at the value, or else `json`.
	Format string `mapstructure:"format"`
}

// Formats of values.
const (
	FormatJSON     = "json"
	FormatAvro     = FromAvro
	FormatProtobuf = FromProtobuf
)

// ContentFormat is that of the values whose fields `fingerprint` names.
func (t Topic) ContentFormat() string {
	m := t.MessageID
	switch {
	case t.Fingerprint.Format != "":
		return t.Fingerprint.Format
	case m.Format != "":
		return m.Format
	case m.Part != PartKey && hasSchemas(m.From):
		return m.From
	}
	return FormatJSON
}

// checkFormat is about a format that is named.
func checkFormat(p *problems, path, format string, fields bool) {
	if format == "" {
		return
	}
	if oneOf(p, path+".format", format, FormatJSON, FormatAvro, FormatProtobuf) && !fields {
		p.add(path+".format", "leave it out", "belongs to ignore and only")
	}
}

func (f Fingerprint) check(p *problems, path string) {
	oneOf(p, path+".of", f.Of, FingerprintAll, FingerprintNone)
	if f.Of == FingerprintNone && len(f.Ignore)+len(f.Only) > 0 {
		p.add(path+".of", "set it to all, or leave out ignore and only",
			"must not be none with fields that count or do not")
	}
	checkFields(p, path, f.Ignore, f.Only)
	checkFormat(p, path, f.Format, len(f.Ignore)+len(f.Only) > 0)
}

// maxFields bounds how often a value is read.
const maxFields = 32

// checkFields is about the fields of a value that do not count, or that do.
func checkFields(p *problems, path string, ignore, only []string) {
	if len(ignore) > 0 && len(only) > 0 {
		p.add(path+".only", "what is not in only is ignored", "excludes %s.ignore", path)
	}
	for _, list := range []struct {
		key   string
		paths []string
	}{{"ignore", ignore}, {"only", only}} {
		at := path + "." + list.key
		if len(list.paths) > maxFields {
			p.add(at, "", "must be at most %d fields, got %d", maxFields, len(list.paths))
		}
		for i, text := range list.paths {
			checkField(p, fmt.Sprintf("%s[%d]", at, i), text)
		}
	}
}

func checkField(p *problems, path, text string) {
	checkJSONPath(p, path, text)
	if documents, err := jsonpath.Parse(text); err == nil && len(documents) > 1 {
		p.add(path, "name the string: "+documents[0].String(),
			"must not lead into a document within a string: %q", text)
	}
}

// isFingerprintWord reports whether the one word stands there.
func isFingerprintWord(node *yaml.Node, t reflect.Type) bool {
	return t == reflect.TypeFor[Fingerprint]() && node.Kind == yaml.ScalarNode &&
		node.Tag == "!!str"
}
