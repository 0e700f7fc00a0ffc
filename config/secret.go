package config

import (
	"fmt"
	"log/slog"
)

const hidden = "[hidden]"

// Secret is a string that prints as "[hidden]", whatever prints it. An empty one prints as empty,
// which shows that it is not set.
type Secret string

// Reveal returns the secret itself. Hand it to a client, never to a log.
func (s Secret) Reveal() string { return string(s) }

// String is what every printed form shows.
func (s Secret) String() string {
	if s == "" {
		return ""
	}
	return hidden
}

// GoString hides the secret from %#v.
func (s Secret) GoString() string { return fmt.Sprintf("%q", s.String()) }

// Format hides the secret from every verb; %x and %d would otherwise print its bytes.
func (s Secret) Format(f fmt.State, verb rune) {
	text := s.String()
	if verb == 'q' || verb == 'v' && f.Flag('#') {
		text = fmt.Sprintf("%q", text)
	}
	_, _ = f.Write([]byte(text)) // fmt offers no way to report it
}

// MarshalJSON hides the secret from encoding/json.
func (s Secret) MarshalJSON() ([]byte, error) { return []byte(`"` + s.String() + `"`), nil }

// MarshalText hides the secret from encoders of text.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// MarshalYAML hides the secret from YAML.
func (s Secret) MarshalYAML() (any, error) { return s.String(), nil }

// LogValue hides the secret from log/slog.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }
