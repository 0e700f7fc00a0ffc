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
// duplicate; otherwise the later one is a conflict, see `on_conflict`. It may be one word:
// `fingerprint: none`. Once a scope has claims, changing it stops the next start, because the
// fingerprints of the old claims would be others.
type Fingerprint struct {
	// `all`: key and value, byte for byte, or the fields that `ignore` or `only` leave. `none`:
	// nothing, records with equal IDs are always the same.
	Of string `mapstructure:"of"`
	// Fields of a JSON value that differ between copies, at most 32, written as
	// `message_id.path` is, but not within a string: `[ts_ms, "meta.attempt"]`. The rest of the
	// value counts by what it says: white space, the order of names and the spelling of strings do
	// not matter; numbers count as they are written. The key counts. A value that is not JSON
	// counts as a whole.
	Ignore []string `mapstructure:"ignore"`
	// The only fields of a JSON value that count, as in `ignore`, beside the key. A value without
	// one of them counts as a whole. Not together with `ignore`.
	Only []string `mapstructure:"only"`
}

func (f Fingerprint) check(p *problems, path string) {
	oneOf(p, path+".of", f.Of, FingerprintAll, FingerprintNone)
	if f.Of == FingerprintNone && len(f.Ignore)+len(f.Only) > 0 {
		p.add(path+".of", "set it to all, or leave out ignore and only",
			"must not be none with fields that count or do not")
	}
	checkFields(p, path, f.Ignore, f.Only)
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
