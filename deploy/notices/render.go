package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

const intro = `Third-party notices of kdedup

kdedup is under the Apache License, Version 2.0: see the file LICENSE. Its binary links the modules
below, each of which has the texts that its numbers name. Made by: go generate ./deploy/notices

`

// terms matches the files with which a module tells its licence.
var terms = regexp.MustCompile(`(?i)^(licen[cs]e|copying|notice|patents)([-._].*)?$`)

// notices are the texts, each once, and which modules have them.
type notices struct {
	texts []string
	of    map[string][]int
}

func render(modules []module) ([]byte, error) {
	n := notices{of: make(map[string][]int)}
	for _, m := range modules {
		if err := n.read(m); err != nil {
			return nil, err
		}
	}
	var out bytes.Buffer
	out.WriteString(intro)
	for _, m := range modules {
		numbers := strings.Trim(strings.ReplaceAll(fmt.Sprint(n.of[m.name]), " ", ", "), "[]")
		fmt.Fprintf(&out, "  %s: %s\n", m.name, numbers)
	}
	for i, text := range n.texts {
		fmt.Fprintf(&out, "\n%s\n%d\n\n%s\n", strings.Repeat("=", 80), i+1, text)
	}
	return out.Bytes(), nil
}

// read takes the texts in the folders of the linked packages, and in those above them: code that a
// module copied has its own.
func (n *notices) read(m module) error {
	for _, folder := range folders(m) {
		entries, err := os.ReadDir(folder)
		if err != nil {
			return fmt.Errorf("%s: look for its licence: %w", m.name, err)
		}
		for _, e := range entries {
			if e.IsDir() || !terms.MatchString(e.Name()) || filepath.Ext(e.Name()) == ".go" {
				continue
			}
			text, err := os.ReadFile(filepath.Join(folder, e.Name()))
			if err != nil {
				return fmt.Errorf("%s: read its licence: %w", m.name, err)
			}
			n.add(m.name, string(text))
		}
	}
	if len(n.of[m.name]) == 0 {
		return fmt.Errorf("%s has no file with a licence: ask its authors, or do without it",
			m.name)
	}
	return nil
}

func (n *notices) add(module, text string) {
	text = strings.Trim(strings.ReplaceAll(text, "\r\n", "\n"), "\n")
	at := slices.Index(n.texts, text)
	if at < 0 {
		at = len(n.texts)
		n.texts = append(n.texts, text)
	}
	if !slices.Contains(n.of[module], at+1) {
		n.of[module] = append(n.of[module], at+1)
	}
}

// folders are those of the packages and all above them, down from the module's.
func folders(m module) (all []string) {
	for _, folder := range m.folders {
		for strings.HasPrefix(folder, m.dir) {
			all = append(all, folder)
			folder = filepath.Dir(folder)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}
