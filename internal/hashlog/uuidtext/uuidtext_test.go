package uuidtext

import (
	"strings"
	"testing"
)

func TestWhatIsPackedIsUnpackedByteForByte(t *testing.T) {
	const id = "01234567-89ab-cdef-0123-456789abcdef"
	packed, ok := Pack([]byte("before"), id)
	if !ok || len(packed) != len("before")+Bytes {
		t.Fatalf("%x, %t", packed, ok)
	}
	if got := Unpack([]byte("x"), packed[len("before"):]); string(got) != "x"+id {
		t.Errorf("got %s", got)
	}
}

// Any other spelling of the same UUID is another ID, and must not become this one.
func TestOnlyTheUsualSpellingIsPacked(t *testing.T) {
	const id = "01234567-89ab-cdef-0123-456789abcdef"
	for at := range len(id) {
		for b := range 256 {
			other := id[:at] + string([]byte{byte(b)}) + id[at+1:]
			packed, ok := Pack(nil, other)
			if ok && string(Unpack(nil, packed)) != other {
				t.Fatalf("%q became %s", other, Unpack(nil, packed))
			}
		}
	}
	for _, other := range []string{"", id[1:], id + "0", strings.ToUpper(id), "{" + id[2:] + "}",
		strings.ReplaceAll(id, "-", "")} {
		if _, ok := Pack(nil, other); ok {
			t.Errorf("%q is packed", other)
		}
	}
}
