package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
)

// manual is the text of every struct and field: "Topic", "Topic.TTL".
type manual map[string]string

// readManual reads the comments of the structs in a folder. Tests have none.
func readManual(folder string) (manual, error) {
	m := manual{}
	err := eachDeclaration(folder, func(g *ast.GenDecl) {
		if g.Tok == token.TYPE {
			m.addTypes(g)
		}
	})
	return m, err
}

// eachDeclaration visits the types, constants and variables of a folder.
func eachDeclaration(folder string, visit func(*ast.GenDecl)) error {
	files, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil {
		return fmt.Errorf("list %s: %w", folder, err)
	}
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
		if err != nil {
			return fmt.Errorf("parse source: %w", err)
		}
		for _, d := range file.Decls {
			if g, ok := d.(*ast.GenDecl); ok {
				visit(g)
			}
		}
	}
	return nil
}

func (m manual) addTypes(g *ast.GenDecl) {
	for _, spec := range g.Specs {
		t := spec.(*ast.TypeSpec)
		structure, ok := t.Type.(*ast.StructType)
		if !ok {
			continue
		}
		m[t.Name.Name] = strings.TrimSpace(g.Doc.Text())
		for _, field := range structure.Fields.List {
			for _, name := range field.Names {
				m[t.Name.Name+"."+name.Name] = strings.TrimSpace(field.Doc.Text())
			}
		}
	}
}

// entry is the manual of one field, taken apart.
type entry struct {
	text     string
	fallback string // what "Default: ..." says, without the full stop
	required bool
}

// entry returns the manual of a field; a field without one is an error.
func (m manual) entry(structure, field string) (entry, error) {
	text := m[structure+"."+field]
	if text == "" {
		return entry{}, fmt.Errorf("%s.%s has no comment; write its manual", structure, field)
	}
	var e entry
	text, fallback, _ := strings.Cut(text, "\n\nDefault: ")
	e.fallback = strings.TrimSuffix(fallback, ".")
	e.text, e.required = strings.CutPrefix(text, "Required. ")
	return e, nil
}
