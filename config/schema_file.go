package config

import (
	_ "embed"
	"slices"
)

//go:embed schema.json
var schema []byte

// Schema is the JSON Schema of the file, for editors and for the values of the Helm chart. Every
// single value may be a text with ${NAME}.
func Schema() []byte { return slices.Clone(schema) }
