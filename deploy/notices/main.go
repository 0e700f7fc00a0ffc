// Command notices writes THIRD_PARTY_NOTICES.txt, the licences of what a release of kdedup links.
// Run it with go generate ./deploy/notices.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
)

//go:generate go run . ../..

const file = "THIRD_PARTY_NOTICES.txt"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: notices ROOT, the top folder of kdedup")
		os.Exit(2)
	}
	if err := run(ctx, os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "notices:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, root string) error {
	text, err := generate(ctx, root)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(root, file), text, 0o644)
}

func generate(ctx context.Context, root string) ([]byte, error) {
	modules, err := linked(ctx, root)
	if err != nil {
		return nil, err
	}
	return render(modules)
}
