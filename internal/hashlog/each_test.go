package hashlog

import (
	"context"
	"errors"
	"testing"
)

// Who reads all records may take long; what has ended meanwhile may be dropped.
func TestSegmentsMayBeDroppedWhileAllRecordsAreRead(t *testing.T) {
	l := open(t, t.TempDir(), Options{SegmentBytes: small})
	defer closeLog(t, l)
	put(t, l, 0, 100, 10)
	put(t, l, 1000, 1, 20)
	dropped, shown := false, 0
	err := l.Each(t.Context(), 5, func(_, _ []byte, ends int64) error {
		if ends == 20 {
			shown++
		}
		if !dropped {
			dropped = true
			settle(t, l)
			_, err := l.Drop(t.Context(), 15)
			return err
		}
		return nil
	})
	if err != nil || shown != 1 {
		t.Fatalf("the record that had not ended was shown %d times: %v", shown, err)
	}
}

func TestReadingAllRecordsEndsWithItsContextAndItsReader(t *testing.T) {
	l := open(t, t.TempDir(), Options{})
	defer closeLog(t, l)
	put(t, l, 0, 1000, 10)
	full := errors.New("full")
	if err := l.Each(t.Context(), 0, func(_, _ []byte, _ int64) error {
		return full
	}); !errors.Is(err, full) {
		t.Errorf("after an error of the reader: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	shown := 0
	err := l.Each(ctx, 0, func(_, _ []byte, _ int64) error {
		shown++
		cancel()
		return nil
	})
	if !errors.Is(err, context.Canceled) || shown > 100 {
		t.Errorf("after the context had ended %d were shown: %v", shown, err)
	}
}
