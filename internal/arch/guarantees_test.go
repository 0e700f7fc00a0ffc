package arch

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

var (
	testNamed = regexp.MustCompile(`\bTest[A-Z]\w+`)
	testMade  = regexp.MustCompile(`(?m)^func (Test\w+)\(`)
)

// A row of docs/guarantees.md is worth as much as its test.
func TestTheGuaranteesNameTestsThatExist(t *testing.T) {
	exist := make(map[string]bool)
	for _, s := range sources(t) {
		if !s.isTest() {
			continue
		}
		text, err := os.ReadFile(filepath.Join(root, s.name))
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range testMade.FindAllStringSubmatch(string(text), -1) {
			exist[match[1]] = true
		}
	}
	text, err := os.ReadFile(filepath.Join(root, "docs/guarantees.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range testNamed.FindAllString(string(text), -1) {
		if !exist[name] {
			t.Errorf("docs/guarantees.md names %s, which does not exist", name)
		}
	}
}
