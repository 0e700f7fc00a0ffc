//go:build !crashpoints

package crashpoint

import "github.com/twmb/franz-go/pkg/kgo"

// At does nothing without the build tag crashpoints.
func At(string) {}

// Hooks returns nothing without the build tag crashpoints.
func Hooks() []kgo.Opt { return nil }
