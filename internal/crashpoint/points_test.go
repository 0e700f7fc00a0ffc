package crashpoint

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A point that is not in the list would be tested by nobody; one that is in the code twice would be
// taken for the other.
func TestEveryStepIsOnceInTheCode(t *testing.T) {
	var found []string
	for _, file := range productFiles(t) {
		found = append(found, calls(t, file)...)
	}
	slices.Sort(found)
	listed := slices.Sorted(slices.Values(slices.Concat(steps, stepsOfRedrive)))
	if diff := cmp.Diff(listed, found); diff != "" {
		t.Errorf("-in the list +in the code:\n%s", diff)
	}
}

// productFiles are the module's sources without its tests.
func productFiles(t *testing.T) (files []string) {
	t.Helper()
	err := filepath.WalkDir("../..", func(name string, entry fs.DirEntry, err error) error {
		if err == nil && filepath.Ext(name) == ".go" && !strings.HasSuffix(name, "_test.go") {
			files = append(files, name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// calls returns the names that a file gives to crashpoint.At.
func calls(t *testing.T, file string) (names []string) {
	t.Helper()
	tree, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(tree, func(node ast.Node) bool {
		call, ok := node.(*ast.CallExpr)
		if !ok || !isAt(call.Fun) {
			return true
		}
		name, ok := call.Args[0].(*ast.BasicLit)
		if !ok {
			t.Errorf("%s: the name of a point is not written out", file)
			return true
		}
		text, err := strconv.Unquote(name.Value)
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, text)
		return true
	})
	return names
}

func isAt(function ast.Expr) bool {
	selector, ok := function.(*ast.SelectorExpr)
	if !ok || selector.Sel.Name != "At" {
		return false
	}
	pkg, ok := selector.X.(*ast.Ident)
	return ok && pkg.Name == "crashpoint"
}
