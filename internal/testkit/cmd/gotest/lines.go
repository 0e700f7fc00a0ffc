package main

import "bytes"

// lineWriter calls line with each line that is written to it, without its end.
type lineWriter struct {
	line func([]byte)
	rest []byte
}

func (w *lineWriter) Write(p []byte) (int, error) {
	w.rest = append(w.rest, p...)
	for {
		line, rest, found := bytes.Cut(w.rest, []byte("\n"))
		if !found {
			return len(p), nil
		}
		w.line(line)
		w.rest = rest
	}
}

// flush passes on a last line that has no end.
func (w *lineWriter) flush() {
	if len(w.rest) > 0 {
		w.line(w.rest)
		w.rest = nil
	}
}
