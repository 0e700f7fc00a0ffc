package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/bufbuild/protocompile"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/kdedup/kdedup/api/kdedup/v1/kdedupv1connect"
)

// The Go code holds the descriptor of the file that it was made of.
func TestTheGeneratedCodeIsThatOfTheFiles(t *testing.T) {
	const api = "../.."
	paths, err := filepath.Glob(api + "/kdedup/*/*.proto")
	if err != nil || len(paths) == 0 {
		t.Fatal(paths, err)
	}
	compiler := protocompile.Compiler{Resolver: protocompile.WithStandardImports(
		&protocompile.SourceResolver{ImportPaths: []string{api}})}
	for _, path := range paths {
		name, err := filepath.Rel(api, path)
		if err != nil {
			t.Fatal(err)
		}
		written, err := compiler.Compile(t.Context(), filepath.ToSlash(name))
		if err != nil {
			t.Fatal(err)
		}
		generated, err := protoregistry.GlobalFiles.FindFileByPath(filepath.ToSlash(name))
		if err != nil {
			t.Fatalf("%v: run make docs", err)
		}
		if diff := cmp.Diff(protodesc.ToFileDescriptorProto(written[0]),
			protodesc.ToFileDescriptorProto(generated), protocmp.Transform()); diff != "" {
			t.Errorf("run make docs: %s (-file +generated):\n%s", name, diff)
		}
	}
}

func TestTheOpenAPIDocumentIsThatOfTheFiles(t *testing.T) {
	const api = "../.."
	_, files, err := compile(t.Context(), api)
	if err != nil {
		t.Fatal(err)
	}
	want, err := openAPI(files)
	if err != nil {
		t.Fatal(err)
	}
	have, err := os.ReadFile(filepath.Join(api, openAPIFile))
	if err != nil {
		t.Fatalf("%v: run make docs", err)
	}
	if diff := cmp.Diff(string(want), string(have)); diff != "" {
		t.Errorf("run make docs (-files +document):\n%s", diff)
	}
}

// Each reference leads to a schema, and each method of the services is there.
func TestTheOpenAPIDocumentIsWhole(t *testing.T) {
	text, err := os.ReadFile("../../" + openAPIFile)
	if err != nil {
		t.Fatal(err)
	}
	var document struct {
		Paths      map[string]any
		Components struct{ Schemas map[string]any }
	}
	if err := json.Unmarshal(text, &document); err != nil {
		t.Fatal(err)
	}
	references := regexp.MustCompile(`#/components/schemas/(\w+)`)
	for _, match := range references.FindAllSubmatch(text, -1) {
		if document.Components.Schemas[string(match[1])] == nil {
			t.Errorf("there is no schema %s", match[1])
		}
	}
	for _, path := range []string{kdedupv1connect.ClaimServiceJudgeProcedure,
		kdedupv1connect.IdempotencyServiceBeginProcedure} {
		if document.Paths[path] == nil {
			t.Errorf("there is no path %s", path)
		}
	}
	if n := len(document.Paths); n != 7 {
		t.Errorf("%d paths, want one for each method", n)
	}
}
