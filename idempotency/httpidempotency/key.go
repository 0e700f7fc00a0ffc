package httpidempotency

import (
	"errors"
	"fmt"
	"strings"

	"github.com/dunglas/httpsfv"
)

// Header is the request header that has the key.
const Header = "Idempotency-Key"

// MaxKey is the longest key, in bytes.
const MaxKey = 255

var errNoKey = errors.New("the header " + Header + " is missing")

// parseKey reads the values of the header. A key is a structured-field string (RFC 9651), so it is
// printable ASCII; parameters behind it are ignored, as that says.
func parseKey(values []string, unquoted bool) (string, error) {
	switch {
	case len(values) == 0:
		return "", errNoKey
	case len(values) > 1:
		return "", fmt.Errorf("the header %s must occur once, got %d", Header, len(values))
	}
	key, err := parseString(values[0])
	if err != nil && unquoted && isUnquoted(values[0]) {
		key, err = values[0], nil
	}
	switch {
	case err != nil:
		return "", err
	case key == "":
		return "", fmt.Errorf("the header %s must not be empty", Header)
	case len(key) > MaxKey:
		return "", fmt.Errorf("the header %s must have at most %d characters, got %d", Header,
			MaxKey, len(key))
	}
	return key, nil
}

func parseString(value string) (string, error) {
	item, err := httpsfv.UnmarshalItem([]string{value})
	if err == nil {
		if key, ok := item.Value.(string); ok {
			return key, nil
		}
	}
	return "", fmt.Errorf("the header %s must be a string in double quotes (RFC 9651)", Header)
}

// isUnquoted leaves out what would mean something in a structured field.
func isUnquoted(value string) bool {
	return !strings.ContainsFunc(value, func(r rune) bool {
		return r <= ' ' || r > '~' || strings.ContainsRune(`",;\`, r)
	})
}
