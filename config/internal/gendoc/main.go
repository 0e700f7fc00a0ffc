// Command gendoc writes docs/configuration.md from the comments, types and defaults of package
// config. Run it with go generate ./config.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	source := flag.String("source", ".", "folder of package config")
	out := flag.String("out", "", "file to write")
	flag.Parse()
	if err := run(*source, *out); err != nil {
		fmt.Fprintln(os.Stderr, "gendoc:", err)
		os.Exit(1)
	}
}

func run(source, out string) error {
	text, err := generate(source)
	if err != nil {
		return err
	}
	if err := os.WriteFile(out, text, 0o644); err != nil {
		return fmt.Errorf("write reference: %w", err)
	}
	return nil
}

// generate returns the whole document: the introduction, the full example, the reference.
func generate(source string) ([]byte, error) {
	example, err := os.ReadFile(filepath.Join(source, "..", "examples", "kdedup.yaml"))
	if err != nil {
		return nil, fmt.Errorf("read example: %w", err)
	}
	manual, err := readManual(source)
	if err != nil {
		return nil, err
	}
	return render(manual, string(example))
}
