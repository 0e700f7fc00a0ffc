package arch

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"
)

const (
	root   = "../.."
	module = "github.com/kdedup/kdedup/"
)

// source is one Go file of the module.
type source struct {
	name      string // slashed, from the root of the module
	lines     int
	generated bool // by a program, for no reader
	imports   []string
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
	return dir == "testdata" || dir == "bin" || strings.HasPrefix(dir, ".") ||
		strings.HasPrefix(dir, "_")
}

func readSource(name string) (source, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return source{}, err
	}
	file, err := parser.ParseFile(token.NewFileSet(), name, text,
		parser.ImportsOnly|parser.ParseComments)
	if err != nil {
		return source{}, err
	}
	relative, err := filepath.Rel(root, name)
	if err != nil {
		return source{}, err
	}
	s := source{name: filepath.ToSlash(relative), lines: bytes.Count(text, []byte("\n")),
		generated: ast.IsGenerated(file)}
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
		if s.lines > limit && !s.isTest() && !s.generated {
			t.Errorf("%s has %d lines; a file has one subject and at most %d lines", s.name,
				s.lines, limit)
		}
	}
}

// A line is read at one look, also beside another window. What cannot be broken stays: texts of
// servers and files in raw strings, tables and drawings in comments, and a long literal.
func TestNoLineIsLong(t *testing.T) {
	const (
		limit = 100
		tab   = 4
	)
	for _, s := range sources(t) {
		if s.generated {
			continue
		}
		text, err := os.ReadFile(filepath.Join(root, s.name))
		if err != nil {
			t.Fatal(err)
		}
		whole := unbreakable(text)
		for i, line := range strings.Split(string(text), "\n") {
			n := utf8.RuneCountInString(line) + (tab-1)*strings.Count(line, "\t")
			if n > limit && !whole[i+1] {
				t.Errorf("%s:%d has %d columns, at most %d are read at one look", s.name, i+1, n,
					limit)
			}
		}
	}
}

// unbreakable are the lines that hold a piece of more than half of their room.
func unbreakable(text []byte) map[int]bool {
	const long = 50
	found := make(map[int]bool)
	files := token.NewFileSet()
	file := files.AddFile("", files.Base(), len(text))
	var s scanner.Scanner
	s.Init(file, text, nil, scanner.ScanComments)
	for {
		at, kind, literal := s.Scan()
		drawn := kind == token.COMMENT &&
			(strings.HasPrefix(literal, "//\t") || strings.HasPrefix(literal, "//   ") ||
				strings.HasPrefix(literal, "//nolint") || strings.HasPrefix(literal, "//go:") ||
				strings.HasPrefix(literal, "// ["))
		switch {
		case kind == token.EOF:
			return found
		case kind == token.STRING && (len(literal) > long || strings.Contains(literal, "\n")),
			drawn:
			for i := range strings.Count(literal, "\n") + 1 {
				found[file.Line(at)+i] = true
			}
		}
	}
}
