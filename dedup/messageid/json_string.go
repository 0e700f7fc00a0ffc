package messageid

import (
	"bytes"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/kdedup/kdedup/dedup"
)

// unquote returns what a valid string stands for; quoted is what lies between its quotes.
func unquote(quoted []byte) (dedup.ID, dedup.MissingReason) { return shared(unescaped(quoted)) }

// unescaped shares memory with a string that has no escapes.
func unescaped(quoted []byte) []byte {
	if bytes.IndexByte(quoted, '\\') < 0 {
		return quoted
	}
	return appendUnescaped(make([]byte, 0, len(quoted)), quoted)
}

// appendUnescaped resolves the escapes of a valid string. Unlike encoding/json it puts U+FFFD in
// place of nothing, because that would make different IDs equal: bytes that are not UTF-8 stay as
// they are, and half of a surrogate pair becomes the three bytes that its code point would have.
func appendUnescaped(dst, quoted []byte) []byte {
	for {
		plain := bytes.IndexByte(quoted, '\\')
		if plain < 0 {
			return append(dst, quoted...)
		}
		dst = append(dst, quoted[:plain]...)
		quoted = quoted[plain:]
		if quoted[1] == 'u' {
			dst, quoted = appendCodePoint(dst, quoted)
			continue
		}
		dst = append(dst, escaped(quoted[1]))
		quoted = quoted[2:]
	}
}

// escaped is the byte that a backslash and c stand for.
func escaped(c byte) byte {
	switch c {
	case 'b':
		return '\b'
	case 'f':
		return '\f'
	case 'n':
		return '\n'
	case 'r':
		return '\r'
	case 't':
		return '\t'
	}
	return c
}

// appendCodePoint resolves the \uXXXX, or the pair of them, with which quoted begins, and returns
// what follows.
func appendCodePoint(dst, quoted []byte) ([]byte, []byte) {
	unit, rest := codeUnit(quoted), quoted[6:]
	if !utf16.IsSurrogate(unit) {
		return utf8.AppendRune(dst, unit), rest
	}
	if bytes.HasPrefix(rest, []byte(`\u`)) {
		if pair := utf16.DecodeRune(unit, codeUnit(rest)); pair != utf8.RuneError {
			return utf8.AppendRune(dst, pair), rest[6:]
		}
	}
	return append(dst, 0xE0|byte(unit>>12), 0x80|byte(unit>>6)&0xBF, 0x80|byte(unit)&0x3F), rest
}

// codeUnit reads \uXXXX, which the scanner has checked.
func codeUnit(quoted []byte) rune {
	unit, _ := strconv.ParseUint(string(quoted[2:6]), 16, 16)
	return rune(unit)
}
