package hashlog

import (
	"slices"
	"testing"
)

func FuzzNotesAreFoundBehindAnything(f *testing.F) {
	f.Add([]byte("nonsense"), int64(7))
	f.Add(noteMark, int64(1)<<40)
	f.Fuzz(func(t *testing.T, before []byte, durable int64) {
		if durable < 0 {
			return
		}
		data := append(slices.Clone(before), appendNote(nil, durable)...)
		if got := durableBefore(data); got < durable {
			t.Errorf("found %d, want %d", got, durable)
		}
		data[len(data)-1] ^= 1
		if got := durableBefore(data); got == durable^1<<56 {
			t.Errorf("a damaged note is believed")
		}
	})
}
