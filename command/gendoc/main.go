// Command gendoc writes docs/metrics.md from the metrics that the packages register, and from the
// questions that they answer. Run it with go generate ./command/gendoc.
package main

import (
	"flag"
	"fmt"
	"os"
)

//go:generate go run . -out ../../docs/metrics.md

func main() {
	out := flag.String("out", "", "file to write")
	flag.Parse()
	text, err := generate()
	if err == nil {
		err = os.WriteFile(*out, text, 0o644)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "gendoc:", err)
		os.Exit(1)
	}
}

func generate() ([]byte, error) {
	families, err := register()
	if err != nil {
		return nil, err
	}
	return render(families)
}
