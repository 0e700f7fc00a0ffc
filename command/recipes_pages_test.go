package command

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// recipePages are the texts of docs/recipes by their names.
func recipePages(t *testing.T) map[string]string {
	t.Helper()
	paths, err := filepath.Glob("../docs/recipes/*.md")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no recipes: %v", err)
	}
	pages := make(map[string]string)
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		pages[filepath.Base(path)] = string(text)
	}
	return pages
}

// foreign are the pages with files of other programs, by a key of these. The packages deploy and
// charts read them.
var foreign = map[string]string{"services": "compose.md", "image": "kubernetes.md"}

var (
	inFile      = regexp.MustCompile(`(file: ?)(/[a-zA-Z0-9/._-]+)`) // a secret, or a *_file
	fromOutside = regexp.MustCompile(`\$\{([A-Z_]+)\}`)
)

func TestEachConfigurationInTheRecipesIsValid(t *testing.T) {
	for name, text := range recipePages(t) {
		blocks := yamlBlock.FindAllStringSubmatch(text, -1)
		for i, block := range blocks {
			t.Run(fmt.Sprintf("%s/%d", name, i), func(t *testing.T) {
				var keys map[string]any
				if err := yaml.Unmarshal([]byte(block[1]), &keys); err != nil {
					t.Fatal(err)
				}
				for key, page := range foreign {
					if keys[key] != nil && page == name {
						return
					}
				}
				validateRecipe(t, block[1])
			})
		}
	}
}

// validateRecipe gives a configuration the variables and files that it takes from outside.
func validateRecipe(t *testing.T, text string) {
	t.Helper()
	directory := t.TempDir()
	for _, match := range fromOutside.FindAllStringSubmatch(text, -1) {
		t.Setenv(match[1], "secret")
	}
	for _, match := range inFile.FindAllStringSubmatch(text, -1) {
		secret := filepath.Join(directory, match[2])
		if err := os.MkdirAll(filepath.Dir(secret), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(secret, []byte("secret\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join(directory, "kdedup.yaml")
	text = inFile.ReplaceAllString(text, "${1}"+directory+"$2")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, out := kdedup(t.Context(), "validate", "--offline", "-c", path); code != 0 {
		t.Errorf("%s\n%s", out, text)
	}
}

var commandBlock = regexp.MustCompile("(?ms)^```(?:sh)?\n(.*?)^```$")

func TestTheRecipesCommandsExist(t *testing.T) {
	found := 0
	for name, text := range recipePages(t) {
		for _, block := range commandBlock.FindAllStringSubmatch(text, -1) {
			for line := range strings.Lines(strings.ReplaceAll(block[1], "\\\n", "")) {
				words := strings.Fields(line)
				if len(words) == 0 || words[0] != "kdedup" {
					continue
				}
				found++
				cmd, flags, err := newRoot().Find(words[1:])
				if err == nil {
					err = cmd.ParseFlags(flags)
				}
				if err != nil || !cmd.Runnable() {
					t.Errorf("%s: %s: %v", name, strings.TrimSpace(line), err)
				}
			}
		}
	}
	if found == 0 {
		t.Error("no page has a command")
	}
}

var (
	nearLink = regexp.MustCompile(`\]\(([^)#:]*\.(?:md|yml))?(?:#([^)]+))?\)`)
	heading  = regexp.MustCompile(`(?m)^#+ (.*)$`)
)

func TestTheRecipesLeadToPlacesThatExist(t *testing.T) {
	pages := recipePages(t)
	for name, text := range pages {
		for _, match := range nearLink.FindAllStringSubmatch(text, -1) {
			page, err := []byte(text), error(nil)
			if match[1] != "" {
				page, err = os.ReadFile(filepath.Join("../docs/recipes", match[1]))
			}
			if err != nil {
				t.Errorf("%s: %v", name, err)
			} else if match[2] != "" && !slices.Contains(anchors(string(page)), match[2]) {
				t.Errorf("%s: %s has no heading #%s", name, match[1], match[2])
			}
		}
		if name != "README.md" && !strings.Contains(pages["README.md"], "]("+name+")") {
			t.Errorf("README.md does not lead to %s", name)
		}
	}
}

var notInAnchors = regexp.MustCompile(`[^a-z0-9 _-]`)

// anchors are the headings of a page as links spell them.
func anchors(page string) (names []string) {
	for _, match := range heading.FindAllStringSubmatch(page, -1) {
		names = append(names, strings.ReplaceAll(
			notInAnchors.ReplaceAllString(strings.ToLower(match[1]), ""), " ", "-"))
	}
	return names
}
