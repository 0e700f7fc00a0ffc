package hashlog

import (
	"testing"
)

func FuzzParseRecord(f *testing.F) {
	f.Add(appendRecord(nil, []byte("key"), []byte("value"), 7))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, length, err := parseRecord(data)
		if err != nil {
			return
		}
		if again := appendRecord(
			nil, r.key, r.value, r.ends,
		); string(again) != string(data[:length]) {
			t.Errorf("%x became %x", data[:length], again)
		}
	})
}
