package logqueue

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/kdedup/kdedup/internal/testkit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func notice(lines uint64) []byte { return fmt.Appendf(nil, "%d dropped\n", lines) }

// reader is one who takes lines only while he is let.
type reader struct {
	testkit.Printed
	mu   sync.Mutex
	gone bool
}

func (r *reader) Write(line []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.gone {
		return 0, errors.New("broken pipe")
	}
	return r.Printed.Write(line)
}

func (r *reader) leave(gone bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.gone = gone
}

func TestLinesAreWrittenInTheirOrder(t *testing.T) {
	r := &reader{}
	q := New(r, notice)
	want := ""
	for n := range 1000 {
		line := fmt.Sprintln("line", n)
		want += line
		if n, err := q.Write([]byte(line)); n != len(line) || err != nil {
			t.Fatal(n, err)
		}
	}
	q.Close(time.Minute)
	if got := r.String(); got != want {
		t.Errorf("written: %s", got)
	}
	if q.Dropped() != 0 {
		t.Errorf("%d dropped", q.Dropped())
	}
}

// A pipe that nobody reads: whoever logs goes on, memory has a bound, and once somebody reads, the
// dropped lines are told in their place, before the last ones.
func TestNobodyWaitsForAReaderThatStandsStill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out, in := io.Pipe()
		q := New(in, notice)
		_, _ = q.Write([]byte("first\n"))
		synctest.Wait() // it is being written
		line := bytes.Repeat([]byte("x"), mostBytes/10)
		line[len(line)-1] = '\n'
		const lines = 25
		for range lines {
			_, _ = q.Write(line)
		}
		_, _ = q.Write([]byte("last\n"))
		if got := q.Dropped(); got != lines-10 {
			t.Errorf("%d dropped, want %d", got, lines-10)
		}
		read := make(chan string)
		go func() {
			text, _ := io.ReadAll(out)
			read <- string(text)
		}()
		q.Close(time.Minute)
		_ = in.Close()
		got := <-read
		want := "first\n15 dropped\n" + strings.Repeat(string(line), 10) + "last\n"
		if got != want {
			t.Errorf("%d bytes read, want %d: %.40q", len(got), len(want), got)
		}
	})
}

func TestALineThatIsLargerThanTheQueueIsWritten(t *testing.T) {
	r := &reader{}
	q := New(r, notice)
	_, _ = q.Write(make([]byte, 2*mostBytes))
	q.Close(time.Minute)
	if got := len(r.String()); got != 2*mostBytes {
		t.Errorf("%d bytes written", got)
	}
}

func TestAReaderThatComesBackIsToldWhatHeMissed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &reader{}
		q := New(r, notice)
		r.leave(true)
		for range 3 {
			_, _ = q.Write([]byte("unread\n"))
		}
		synctest.Wait()
		r.leave(false)
		_, _ = q.Write([]byte("read\n"))
		q.Close(time.Minute)
		if got := r.String(); got != "3 dropped\nread\n" {
			t.Errorf("written: %q", got)
		}
		if q.Dropped() != 3 {
			t.Errorf("%d dropped", q.Dropped())
		}
	})
}

// The end of a process waits for the last lines, but not for ever.
func TestCloseWaitsAsLongAsItIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out, in := io.Pipe()
		q := New(in, notice)
		_, _ = q.Write([]byte("why it ended\n"))
		began := time.Now()
		q.Close(2 * time.Second)
		if took := time.Since(began); took != 2*time.Second {
			t.Errorf("waited %v", took)
		}
		_, _ = q.Write([]byte("too late\n"))
		if q.Dropped() != 1 {
			t.Errorf("%d dropped", q.Dropped())
		}
		_ = out.Close() // the write ends
		<-q.ended
	})
}

func TestManyMayWriteAtOnce(t *testing.T) {
	r := &reader{}
	q := New(r, notice)
	var writers sync.WaitGroup
	for n := range 8 {
		writers.Go(func() {
			for range 500 {
				_, _ = fmt.Fprintln(q, "writer", n)
			}
		})
	}
	writers.Wait()
	q.Close(time.Minute)
	lines := strings.Count(r.String(), "\n")
	if lines != 8*500 || q.Dropped() != 0 {
		t.Errorf("%d lines, %d dropped", lines, q.Dropped())
	}
}
