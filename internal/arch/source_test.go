package arch

import (
	"bytes"
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

const (
	root   = "../.."
	module = "github.com/kdedup/kdedup/"
)

// source is one Go file of the module.
type source struct {
	name    string // slashed, from the root of the module
	lines   int
	imports []string
}

func (s source) dir() string  { return path.Dir(s.name) }
func (s source) isTest() bool { return strings.HasSuffix(s.name, "_test.go") }

// sources reads all Go files, whatever their build tags. It opens them itself, and does not ask
// `go list`, so that the go command knows when a cached test result is out of date.
func sources(t *testing.T) []source {
	t.Helper()
	var all []source
	err := filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && name != root && ignored(entry.Name()):
			return filepath.SkipDir
		case entry.IsDir() || filepath.Ext(name) != ".go":
			return nil
		}
		s, err := readSource(name)
		all = append(all, s)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(all) == 0 {
		t.Fatal("no Go files found")
	}
	return all
}

// ignored is for directories that the go command ignores too, and for what make builds.
func ignored(dir string) bool {
	return dir == "testdata" || dir == "bin" || strings.HasPrefix(dir, ".") || strings.HasPrefix(dir, "_")
}

func readSource(name string) (source, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return source{}, err
	}
	file, err := parser.ParseFile(token.NewFileSet(), name, text, parser.ImportsOnly)
	if err != nil {
		return source{}, err
	}
	relative, err := filepath.Rel(root, name)
	if err != nil {
		return source{}, err
	}
	s := source{name: filepath.ToSlash(relative), lines: bytes.Count(text, []byte("\n"))}
	for _, spec := range file.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return source{}, fmt.Errorf("%s: %w", name, err)
		}
		s.imports = append(s.imports, imported)
	}
	return s, nil
}

func TestNoFileIsLong(t *testing.T) {
	const limit = 400
	for _, s := range sources(t) {
		if s.lines > limit && !s.isTest() {
			t.Errorf("%s has %d lines; a file has one subject and at most %d lines", s.name, s.lines, limit)
		}
	}
}
