package command

import (
	"context"
	"errors"
	"io"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kdedup/kdedup/config"
)

// A pager that stands still holds up a command, but not its end.
func TestAnOutputWithoutRoomHoldsUpOnlyACommandThatGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reader, writer := io.Pipe()
		ctx, end := context.WithCancel(t.Context())
		o := &output{to: writer, ended: ctx, nobody: func(error) {}}
		time.AfterFunc(time.Hour, end)
		began := time.Now()
		if _, err := io.WriteString(o, "much"); !errors.Is(err, errNobodyReads) {
			t.Errorf("got %v", err)
		}
		if _, err := io.WriteString(o, "more"); !errors.Is(err, errNobodyReads) {
			t.Errorf("then %v", err)
		}
		if took := time.Since(began); took != time.Hour+outputPatience {
			t.Errorf("took %v", took)
		}
		_ = reader.Close() // so that the write ends
	})
}

// noReader is the writing end of a pipe whose reader has gone.
type noReader struct{}

func (noReader) Write([]byte) (int, error) { return 0, syscall.EPIPE }

func TestACommandHearsThatNobodyReads(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	o := &output{to: noReader{}, ended: ctx, nobody: cancel}
	if _, err := io.WriteString(o, "text"); !errors.Is(err, syscall.EPIPE) {
		t.Errorf("got %v", err)
	}
	if cause := context.Cause(ctx); !errors.Is(cause, errNobodyReads) {
		t.Errorf("ended by %v", cause)
	}
}

// The line has the form of the others, and is written whatever the level.
func TestDroppedLinesOfTheLogAreToldInItsForm(t *testing.T) {
	l := newRunLog(io.Discard, nil)
	l.lines.Close(time.Minute)
	for format, want := range map[string]string{
		"text": "level=WARN msg=\"lines of the log were dropped: its reader was too slow, stood " +
			"still or was gone\" lines=7\n",
		"json": `"lines":7}` + "\n",
	} {
		l.settings.Store(&config.Log{Format: format, Level: "error"})
		if got := string(l.dropped(7)); !strings.HasSuffix(got, want) {
			t.Errorf("%s: %s", format, got)
		}
	}
}
