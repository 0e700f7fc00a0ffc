package servers

import (
	"bytes"
	"fmt"
	"io"
	"os"
)

const (
	tailLines = 40
	tailBytes = 16 << 10
)

// logTail returns the last lines of a log, headed by its path.
func logTail(path string) string {
	tail, err := readTail(path)
	if err != nil {
		return fmt.Sprintf("no log: %v", err)
	}
	lines := bytes.Split(bytes.TrimRight(tail, "\n"), []byte("\n"))
	lines = lines[max(0, len(lines)-tailLines):]
	return fmt.Sprintf("end of %s:\n%s", path, bytes.Join(lines, []byte("\n")))
}

func readTail(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return nil, err
	}
	if _, err := f.Seek(max(0, size-tailBytes), io.SeekStart); err != nil {
		return nil, err
	}
	return io.ReadAll(f)
}
