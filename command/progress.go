package command

import (
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/term"
)

func isTerminal(out io.Writer) bool {
	file, ok := behind(out).(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}

// readsTerminal reports whether somebody can be asked.
func readsTerminal(in io.Reader) bool {
	file, ok := in.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}

// progress is one line on a terminal that says how far a command has read. Elsewhere nothing is
// shown.
type progress struct {
	out   io.Writer // nil if it is no terminal
	begun time.Time
	shown time.Time
}

const progressEvery = 200 * time.Millisecond

func newProgress(out io.Writer) *progress {
	p := &progress{begun: time.Now()}
	if isTerminal(out) {
		p.out = out
	}
	return p
}

// show says how many of the offsets are done; transactions and compaction take some, so that the
// records may end before the total.
func (p *progress) show(done, total int64) {
	if p.out == nil || time.Since(p.shown) < progressEvery {
		return
	}
	p.shown = time.Now()
	perSecond := float64(done) / time.Since(p.begun).Seconds()
	fmt.Fprintf(p.out, "read %d of %d   %.0f records/s\x1b[K\r", done, total, perSecond)
}

// end clears the line.
func (p *progress) end() {
	if p.out != nil {
		fmt.Fprint(p.out, "\x1b[K")
	}
}

// count says how many claims were dealt with in some way, of which nobody knows the total.
func (p *progress) count(what string, claims int64) {
	if p.out == nil || time.Since(p.shown) < progressEvery {
		return
	}
	p.shown = time.Now()
	fmt.Fprintf(p.out, "%s %d claims   %s\x1b[K\r", what, claims,
		time.Since(p.begun).Round(time.Second))
}
