package testkit

import (
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// Environment is the test's without the addresses of its servers, which kdedup would take for
// settings that it does not know.
func Environment() []string {
	return slices.DeleteFunc(os.Environ(), func(entry string) bool {
		return strings.HasPrefix(entry, "KDEDUP_")
	})
}

// Number is that of an environment variable, or the usual one.
func Number(t testing.TB, variable string, usual int) int {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return usual
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("%s: %q is not a number above 0", variable, text)
	}
	return n
}
