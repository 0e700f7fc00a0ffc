package messageid

import (
	"bytes"
	"encoding/binary"
	"math/bits"
)

// The scanner accepts what encoding/json accepts (RFC 8259), and the numbers NaN, Infinity and
// -Infinity, which some serializers write. Each function takes the position of what it reads and
// returns the position after it, or invalid. Passing invalid on is safe: no byte stands there, so
// the next function returns invalid as well.
const invalid = -1

// maxJSONDepth bounds the recursion; encoding/json draws the same line.
const maxJSONDepth = 10000

// at returns the byte at i, and 0 outside of doc: a byte that is valid nowhere.
func at(doc []byte, i int) byte {
	if uint(i) < uint(len(doc)) {
		return doc[i]
	}
	return 0
}

func skipSpace(doc []byte, i int) int {
	for c := at(doc, i); c == ' ' || c == '\n' || c == '\t' || c == '\r'; c = at(doc, i) {
		i++
	}
	return i
}

// scanValue reads one value and returns the field to which the path leads from there; without a
// path it only reads. It may be depth levels deep. Where end is invalid, field is one that was
// complete before: a comma, or the end of what it lies in, stands behind it.
func scanValue(doc []byte, i int, path jsonPath, depth int) (field jsonSpan, end int) {
	switch c := at(doc, i); c {
	case '"':
		return jsonSpan{}, skipString(doc, i)
	case '{', '[':
		if depth == 0 {
			return jsonSpan{}, invalid
		}
		if c == '{' {
			return scanObject(doc, i, path, depth-1)
		}
		return scanArray(doc, i, path, depth-1)
	case 't':
		return jsonSpan{}, skipWord(doc, i, "true")
	case 'f':
		return jsonSpan{}, skipWord(doc, i, "false")
	case 'n':
		return jsonSpan{}, skipWord(doc, i, "null")
	}
	return jsonSpan{}, skipNumber(doc, i)
}

// scanObject lets each member that the path leads to replace what an earlier one of the same name
// gave, also if that was more.
func scanObject(doc []byte, i int, path jsonPath, depth int) (field jsonSpan, end int) {
	if i = skipSpace(doc, i+1); at(doc, i) == '}' {
		return jsonSpan{}, i + 1
	}
	led := false // the path leads to the last member that was read
	for more := true; more; {
		name := jsonSpan{i, skipString(doc, i)}
		if i = skipSpace(doc, name.end); at(doc, i) != ':' {
			return field, invalid
		}
		i = skipSpace(doc, i+1)
		if led = path.leadsTo(doc, name); led {
			field, i = path.enter(doc, i, depth)
		} else {
			_, i = scanValue(doc, i, nil, depth)
		}
		i, more = skipSeparator(doc, i, '}')
	}
	if i == invalid && led {
		return path.complete(field), invalid
	}
	return field, i
}

func scanArray(doc []byte, i int, path jsonPath, depth int) (field jsonSpan, end int) {
	if i = skipSpace(doc, i+1); at(doc, i) == ']' {
		return jsonSpan{}, i + 1
	}
	led := false
	for index, more := 0, true; more; index++ {
		if led = len(path) > 0 && path[0].Index == index; led {
			field, i = path.enter(doc, i, depth)
		} else {
			_, i = scanValue(doc, i, nil, depth)
		}
		i, more = skipSeparator(doc, i, ']')
	}
	if i == invalid && led {
		return path.complete(field), invalid
	}
	return field, i
}

// complete is about a field behind which neither a comma nor the end of what it lies in stands: 12
// may be the beginning of 123. One that lies deeper has its own end behind it.
func (p jsonPath) complete(field jsonSpan) jsonSpan {
	if len(p) == 1 {
		return jsonSpan{}
	}
	return field
}

// skipSeparator reads what stands behind a member or an element: a comma, and then there is more,
// or the end.
func skipSeparator(doc []byte, i int, closing byte) (next int, more bool) {
	switch i = skipSpace(doc, i); at(doc, i) {
	case ',':
		return skipSpace(doc, i+1), true
	case closing:
		return i + 1, false
	}
	return invalid, false
}

func skipWord(doc []byte, i int, word string) int {
	if !bytes.HasPrefix(doc[i:], []byte(word)) {
		return invalid
	}
	return i + len(word)
}

func skipNumber(doc []byte, i int) int {
	start := i
	if at(doc, i) == '-' {
		i++
	}
	if at(doc, i) == '0' {
		i++
	} else if i = skipDigits(doc, i); i == invalid {
		return skipNoNumber(doc, start)
	}
	if at(doc, i) == '.' {
		i = skipDigits(doc, i+1)
	}
	if c := at(doc, i); c == 'e' || c == 'E' {
		if c = at(doc, i+1); c == '+' || c == '-' {
			i++
		}
		i = skipDigits(doc, i+1)
	}
	return i
}

// skipNoNumber reads the words that stand for a number that JSON cannot write.
func skipNoNumber(doc []byte, i int) int {
	for _, word := range []string{"NaN", "Infinity", "-Infinity"} {
		if at(doc, i) == word[0] && bytes.HasPrefix(doc[i:], []byte(word)) {
			return i + len(word)
		}
	}
	return invalid
}

// skipDigits wants at least one.
func skipDigits(doc []byte, i int) int {
	start := i
	for c := at(doc, i); '0' <= c && c <= '9'; c = at(doc, i) {
		i++
	}
	if i == start {
		return invalid
	}
	return i
}

func skipString(doc []byte, i int) int {
	if at(doc, i) != '"' {
		return invalid
	}
	for i++; ; {
		switch i = skipPlain(doc, i); at(doc, i) {
		case '"':
			return i + 1
		case '\\':
			if i = skipEscape(doc, i); i == invalid {
				return invalid
			}
		default: // the document ends, or a control character stands in the string
			return invalid
		}
	}
}

func skipEscape(doc []byte, i int) int {
	switch at(doc, i+1) {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return i + 2
	case 'u':
		for digit := i + 2; digit < i+6; digit++ {
			if !isHex(at(doc, digit)) {
				return invalid
			}
		}
		return i + 6
	}
	return invalid
}

func isHex(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F'
}

// skipPlain finds the next quote, backslash or control character, eight bytes at a time.
func skipPlain(doc []byte, i int) int {
	for ; len(doc)-i >= 8; i += 8 {
		if special := specialBytes(binary.LittleEndian.Uint64(doc[i:])); special != 0 {
			return i + bits.TrailingZeros64(special)/8
		}
	}
	for i < len(doc) && doc[i] != '"' && doc[i] != '\\' && doc[i] >= ' ' {
		i++
	}
	return i
}

// specialBytes sets the highest bit of every byte that is a quote, a backslash or a control
// character. A borrow may set it in bytes above such a one too, so only the lowest bit counts.
func specialBytes(word uint64) uint64 {
	const ones, highs = 0x0101010101010101, 0x8080808080808080
	quote := word ^ ones*'"'
	backslash := word ^ ones*'\\'
	return ((quote-ones)&^quote | (backslash-ones)&^backslash | (word-ones*' ')&^word) & highs
}
