package main

import (
	"errors"
	"testing"
	"time"
)

func TestARunEndsWhenItsRecordsCanNoLongerBeCounted(t *testing.T) {
	gone := errors.New("read the clean topic: gone")
	for name, c := range map[string]struct {
		ended bool
		err   error
		want  string
	}{
		"an error":    {true, gone, gone.Error()},
		"no error":    {true, nil, "the reader of the clean topic ended"},
		"still reads": {false, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := reader{ended: make(chan struct{}), err: c.err}
			if c.ended {
				close(r.ended)
			}
			asked := 0
			counted := func() (bool, int64, error) {
				asked++
				return asked == 3, 1, r.failure()
			}
			err := new(Run).watch(t.Context(), counted, nil, time.Now())
			switch {
			case c.want == "" && (err != nil || asked != 3):
				t.Errorf("asked %d times, %v", asked, err)
			case c.want != "" && (err == nil || err.Error() != c.want || asked != 1):
				t.Errorf("asked %d times, got %v, want %s", asked, err, c.want)
			}
		})
	}
}
