// Command gendoc writes docs/configuration.md, and the JSON Schema of the file, from the comments,
// types and defaults of package config. Run it with go generate ./config.
package main

import (
	"flag"
	"fmt"
	"os"
)

func main() {
	source := flag.String("source", ".", "folder of package config")
	out := flag.String("out", "", "file to write the manual to")
	schema := flag.String("schema", "", "file to write the schema to")
	flag.Parse()
	if err := run(*source, *out, *schema); err != nil {
		fmt.Fprintln(os.Stderr, "gendoc:", err)
		os.Exit(1)
	}
}

func run(source, out, schema string) error {
	for file, generate := range map[string]func(string) ([]byte, error){
		out: generate, schema: generateSchema,
	} {
		text, err := generate(source)
		if err != nil {
			return err
		}
		if err := os.WriteFile(file, text, 0o644); err != nil {
			return fmt.Errorf("write reference: %w", err)
		}
	}
	return nil
}

// generate returns the whole document: the introduction, and the reference.
func generate(source string) ([]byte, error) {
	manual, err := readManual(source)
	if err != nil {
		return nil, err
	}
	return render(manual)
}
