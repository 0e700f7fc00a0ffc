package servers

import (
	"strings"
	"testing"
)

func TestPackagesOfPythonAreInstalledOnceForEachVersion(t *testing.T) {
	runs := useFake(t, "python3", `test "$1" != --version || echo "Python $FAKE_VERSION"`)
	for i, version := range []string{"3.11.2", "3.11.2", "3.13.5", "3.13.5"} {
		t.Setenv("FAKE_VERSION", version)
		if _, err := FindPython(t.Context()); err != nil {
			t.Fatal(err)
		}
		// each look asks for the version, and the first with a version installs
		if want := i + 1 + i/2 + 1; runs() != want {
			t.Errorf("look %d: python3 ran %d times, want %d", i, runs(), want)
		}
	}
}

func TestAPythonWithoutItsPackagesIsNone(t *testing.T) {
	useFake(t, "python3", `test "$1" = --version || { echo "No module named pip"; exit 1; }`)
	if _, err := FindPython(t.Context()); err == nil ||
		!strings.Contains(err.Error(), "No module named pip") {
		t.Errorf("got %v, want pip's words", err)
	}
	if err := FindRegistry(t.Context()); err == nil {
		t.Error("a registry without Java was found")
	}
}
