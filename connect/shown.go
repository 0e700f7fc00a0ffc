package connect

import (
	"encoding/hex"
	"unicode/utf8"

	"github.com/kdedup/kdedup/dedup"
)

// ShownID is an ID as text, in hexadecimal digits if it is not UTF-8.
func ShownID(id dedup.ID) string {
	if utf8.ValidString(string(id)) {
		return string(id)
	}
	return hex.EncodeToString([]byte(id))
}
