package deploy

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/kdedup/kdedup/internal/testkit"
)

var imageFiles = []string{"../Dockerfile", "release.Dockerfile", "../docker-compose.yml"}

// pinned copies the files and runs tools/pin on them, with a script in the place of crane.
func pinned(t *testing.T, crane string, files ...string) (texts []string, err error) {
	t.Helper()
	testkit.EachRun()
	dir := t.TempDir()
	script := filepath.Join(dir, "crane")
	if err := os.WriteFile(script, []byte("#!/bin/sh\n"+crane), 0o700); err != nil {
		t.Fatal(err)
	}
	var paths []string
	for i, text := range files {
		path := filepath.Join(dir, fmt.Sprint(i))
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		paths = append(paths, path)
	}
	pin := exec.CommandContext(t.Context(), "../tools/pin", paths...)
	pin.Env = append(os.Environ(), "CRANE="+script)
	if out, failed := pin.CombinedOutput(); failed != nil {
		err = fmt.Errorf("%w: %s", failed, out)
	}
	for _, path := range paths {
		texts = append(texts, read(t, path))
	}
	return texts, err
}

// digestOf answers with a digest that begins with the length of the image's name.
const digestOf = `[ "$1" = digest ] && printf 'sha256:%02d%062d\n' "${#2}" 7`

func TestPinNamesEveryImageByItsDigest(t *testing.T) {
	var before []string
	for _, path := range imageFiles {
		before = append(before, read(t, path))
	}
	once, err := pinned(t, digestOf, before...)
	if err != nil {
		t.Fatal(err)
	}
	image := regexp.MustCompile(`(?m)^(?:FROM(?: --platform=\S+)?| +image:) +(\S+)`)
	for i, text := range once {
		for _, match := range image.FindAllStringSubmatch(text, -1) {
			name := withoutDigest(match[1])
			want := name + fmt.Sprintf("@sha256:%02d%062d", len(name), 7)
			if match[1] != want && name != "kdedup:local" {
				t.Errorf("%s: got %s, want %s", imageFiles[i], match[1], want)
			}
		}
		if withoutDigests(text) != withoutDigests(before[i]) {
			t.Errorf("%s is changed otherwise:\n%s", imageFiles[i], text)
		}
	}
	again, err := pinned(t, strings.Replace(digestOf, " 7", " 8", 1), once...)
	if err != nil || strings.Contains(strings.Join(again, ""), "07\n") {
		t.Errorf("digests that were there are not renewed: %v", err)
	}
}

func withoutDigests(text string) string {
	return regexp.MustCompile(`@sha256:[0-9a-f]{64}`).ReplaceAllString(text, "")
}

func TestPinChangesNothingWithoutAnAnswerForEachImage(t *testing.T) {
	const two = "FROM golang:1.26.8 AS build\nFROM debian:12-slim\n"
	for crane, want := range map[string]string{
		`[ "$2" = golang:1.26.8 ] && echo no such host >&2 && exit 1; ` + digestOf: "no such host",
		"echo sha256:12": "no digest: sha256:12",
	} {
		texts, err := pinned(t, crane, two)
		if err == nil || !strings.Contains(err.Error(), want) || texts[0] != two {
			t.Errorf("%s: got %v and\n%s", crane, err, texts[0])
		}
	}
}

func TestAnImageWithoutADigestIsSeen(t *testing.T) {
	digest := "@sha256:" + strings.Repeat("a", 64)
	for text, want := range map[string]string{
		"FROM golang:1.2.3" + digest + " AS build\n": "",
		"    image: kdedup:local\n":                  "",
		"FROM a:1\nFROM --platform=x b/c:2 AS d\n":   "run make pin: a:1 b/c:2",
		"    image: a:1\n":                           "run make pin: a:1",
	} {
		path := filepath.Join(t.TempDir(), "file")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		out, err := exec.CommandContext(
			t.Context(), "../tools/pin", "--check", path,
		).CombinedOutput()
		if (err != nil) != (want != "") || !strings.Contains(string(out), want) {
			t.Errorf("%q: %v %s", text, err, out)
		}
	}
}
