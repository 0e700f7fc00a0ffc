package command

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
)

// dialogue asks for what flags do not say.
type dialogue struct {
	in      *bufio.Reader
	out     io.Writer
	asks    bool // somebody is there
	usually bool // who takes all defaults
}

// errNoAnswer is the end of the input.
var errNoAnswer = errors.New("no answer")

// ask returns the default for an empty answer, and where nobody is asked; without a default the
// flag is missing.
func (d *dialogue) ask(ctx context.Context, question, usual, flag string) (string, error) {
	if !d.asks || d.usually && usual != "" {
		if usual == "" {
			return "", usageError{fmt.Errorf("%s is required: nobody can be asked here", flag)}
		}
		return usual, nil
	}
	for {
		if fmt.Fprint(d.out, question); usual != "" {
			fmt.Fprintf(d.out, " [%s]", usual)
		}
		fmt.Fprint(d.out, ": ")
		answer, err := d.line(ctx)
		if err != nil {
			return "", fmt.Errorf("%s: %w", flag, err)
		}
		if answer = strings.TrimSpace(answer); answer != "" {
			return answer, nil
		}
		if usual != "" {
			return usual, nil
		}
		fmt.Fprintln(d.out, "there is no usual answer: type one, or end with Ctrl-C")
	}
}

// line waits for a line or a signal. A reading that a signal interrupts cannot be stopped: it ends
// with the process, which has nothing else to do then.
func (d *dialogue) line(ctx context.Context) (string, error) {
	type result struct {
		text string
		err  error
	}
	read := make(chan result, 1)
	go func() {
		text, err := d.in.ReadString('\n')
		read <- result{text, err}
	}()
	select {
	case <-ctx.Done():
		fmt.Fprintln(d.out)
		return "", context.Cause(ctx)
	case r := <-read:
		if r.err != nil && r.text == "" {
			fmt.Fprintln(d.out)
			return "", errNoAnswer
		}
		return r.text, nil
	}
}

// retry asks again after an answer that is wrong. Where nobody is asked, the error stands.
func (d *dialogue) retry(err error) bool {
	if !d.asks || d.usually || !errors.As(err, new(wrongAnswer)) {
		return false
	}
	fmt.Fprintln(d.out, err)
	return true
}

// wrongAnswer is worth another question.
type wrongAnswer struct{ error }

func (e wrongAnswer) Unwrap() error { return e.error }
