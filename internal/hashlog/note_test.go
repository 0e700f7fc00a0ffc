package hashlog

import (
	"slices"
	"testing"
)

// The checksum before the mark may end as the mark begins.
func TestEveryNoteIsFound(t *testing.T) {
	for durable := range int64(5000) {
		if got := durableBefore(appendNote([]byte("nonsense"), durable)); got != durable {
			t.Errorf("found %d, want %d", got, durable)
		}
	}
}

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
