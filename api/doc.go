// Package api has what programs in any language ask kdedup, as Protocol Buffers: docs/api.md.
package api

//go:generate go run ./internal/gen
