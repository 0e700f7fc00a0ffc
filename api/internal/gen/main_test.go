package main

import (
	"path/filepath"
	"testing"

	"github.com/bufbuild/protocompile"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/testing/protocmp"

	_ "github.com/kdedup/kdedup/api/kdedup/v1"
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
