// Command gen makes the Go code of the .proto files, with the plugins of tools/go.mod, and an
// OpenAPI document. It needs no protoc: package protocompile reads the files.
package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"

	"github.com/bufbuild/protocompile"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/pluginpb"
)

// plugins write Go code and the handlers and clients of connect.
var plugins = []string{"protoc-gen-go", "protoc-gen-connect-go"}

func main() {
	if err := generate(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "gen:", err)
		os.Exit(1)
	}
}

// generate works in the folder api, where go generate runs it.
func generate(ctx context.Context) error {
	names, compiled, err := compile(ctx, ".")
	if err != nil {
		return err
	}
	if err := writeOpenAPI(compiled); err != nil {
		return err
	}
	request := &pluginpb.CodeGeneratorRequest{FileToGenerate: names,
		Parameter: proto.String("paths=source_relative")}
	for _, file := range compiled {
		request.ProtoFile = appendFile(request.ProtoFile, file)
	}
	for _, plugin := range plugins {
		if err := run(ctx, plugin, request); err != nil {
			return fmt.Errorf("%s: %w", plugin, err)
		}
	}
	return nil
}

// compile reads the files below a folder, with their comments.
func compile(
	ctx context.Context, folder string,
) (names []string, files []protoreflect.FileDescriptor, err error) {
	paths, err := filepath.Glob(filepath.Join(folder, "kdedup/*/*.proto"))
	if err != nil {
		return nil, nil, err
	}
	for _, path := range paths {
		name, err := filepath.Rel(folder, path)
		if err != nil {
			return nil, nil, err
		}
		names = append(names, filepath.ToSlash(name))
	}
	compiler := protocompile.Compiler{
		Resolver: protocompile.WithStandardImports(
			&protocompile.SourceResolver{ImportPaths: []string{folder}}),
		SourceInfoMode: protocompile.SourceInfoStandard,
	}
	compiled, err := compiler.Compile(ctx, names...)
	if err != nil {
		return nil, nil, err
	}
	for _, file := range compiled {
		files = append(files, file)
	}
	return names, files, nil
}

// appendFile puts what a file imports in front of it, as plugins want it.
func appendFile(
	files []*descriptorpb.FileDescriptorProto, file protoreflect.FileDescriptor,
) []*descriptorpb.FileDescriptorProto {
	if slices.ContainsFunc(files, func(f *descriptorpb.FileDescriptorProto) bool {
		return f.GetName() == file.Path()
	}) {
		return files
	}
	for i := range file.Imports().Len() {
		files = appendFile(files, file.Imports().Get(i).FileDescriptor)
	}
	return append(files, protodesc.ToFileDescriptorProto(file))
}

func run(ctx context.Context, plugin string, request *pluginpb.CodeGeneratorRequest) error {
	in, err := proto.Marshal(request)
	if err != nil {
		return err
	}
	command := exec.CommandContext(ctx, "go", "tool", "-modfile=../tools/go.mod", plugin)
	command.Stdin, command.Stderr = bytes.NewReader(in), os.Stderr
	out, err := command.Output()
	if err != nil {
		return err
	}
	var response pluginpb.CodeGeneratorResponse
	if err := proto.Unmarshal(out, &response); err != nil {
		return err
	}
	if response.Error != nil {
		return fmt.Errorf("%s", response.GetError())
	}
	for _, file := range response.GetFile() {
		if err := os.MkdirAll(filepath.Dir(file.GetName()), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(file.GetName(), []byte(file.GetContent()), 0o644); err != nil {
			return err
		}
	}
	return nil
}
