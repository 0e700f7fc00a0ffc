// Package uuidtext packs the text of UUIDs.
package uuidtext

// Most message IDs are UUIDs in their usual spelling. Such an ID is packed into the 16 bytes that
// it stands for; any other spelling stays as it is, so that what is unpacked is what was packed,
// byte for byte.
const (
	TextBytes = 36 // of a UUID in its usual spelling
	Bytes     = 16 // of one that is packed
)

const hexDigits = "0123456789abcdef"

// digitOf is the value of a lower-case hexadecimal digit, 0xff of another byte.
var digitOf = func() (values [256]byte) {
	for i := range values {
		values[i] = 0xff
	}
	for i := range len(hexDigits) {
		values[hexDigits[i]] = byte(i)
	}
	return values
}()

func isDash(i int) bool { return i == 8 || i == 13 || i == 18 || i == 23 }

// Pack appends the 16 bytes of a lower-case UUID with dashes, or reports that the ID is none.
func Pack[T ~string | ~[]byte](to []byte, id T) (packed []byte, ok bool) {
	if len(id) != TextBytes {
		return to, false
	}
	packed = to
	for i := 0; i < TextBytes; {
		if isDash(i) {
			if id[i] != '-' {
				return to, false
			}
			i++
			continue
		}
		high, low := digitOf[id[i]], digitOf[id[i+1]]
		if high > 15 || low > 15 {
			return to, false
		}
		packed = append(packed, high<<4|low)
		i += 2
	}
	return packed, true
}

// Unpack appends the text of 16 bytes.
func Unpack(to, packed []byte) []byte {
	for i, b := range packed {
		if i == 4 || i == 6 || i == 8 || i == 10 {
			to = append(to, '-')
		}
		to = append(to, hexDigits[b>>4], hexDigits[b&15])
	}
	return to
}
