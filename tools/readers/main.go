// Command readers reads a topic with committed and aborted transactions, and one of each codec,
// with the clients that applications use, and writes what each hands out into docs/readers.md:
//
//	go run . -kafka localhost:9092 -write ../../docs/readers.md
//
// It installs the clients with Go, pip, npm, Maven and Cargo. If one cannot be installed it says
// why, and writes nothing: the table would lack a row.
package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

const (
	readLimit    = time.Minute
	prepareLimit = 15 * time.Minute
)

func main() {
	kafka := flag.String("kafka", "localhost:9092", "a broker of Kafka `HOST:PORT`")
	write := flag.String("write", "", "`FILE` whose table is written again (default: print it)")
	keep := flag.String("keep", "", "`FOLDER` for what is installed, to use it again (default: none)")
	flag.Parse()
	if err := run(context.Background(), *kafka, *write, *keep); err != nil {
		fmt.Fprintln(os.Stderr, "readers:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, broker, file, work string) (err error) {
	if work == "" {
		if work, err = os.MkdirTemp("", "readers"); err != nil {
			return err
		}
		defer os.RemoveAll(work)
	}
	topics, err := produce(ctx, broker)
	if err != nil {
		return err
	}
	defer topics.remove(ctx)
	prepared := make(map[string]error)
	var rows []row
	var failed []string
	for _, c := range clients {
		err, done := prepared[c.in]
		if !done {
			fmt.Fprintln(os.Stderr, "installing what", c.in, "needs")
			err = c.prepare(ctx, work)
			prepared[c.in] = err
		}
		if err != nil {
			failed = append(failed, fmt.Sprintf("%s cannot be run: %v", c.name, err))
			continue
		}
		fmt.Fprintln(os.Stderr, "reading with", c.name)
		r, err := topics.read(ctx, broker, work, c)
		if err != nil {
			return err
		}
		rows = append(rows, r)
	}
	if len(failed) > 0 { // the table would lack their rows
		return fmt.Errorf("%s", strings.Join(failed, "; "))
	}
	if file == "" {
		fmt.Print(table(rows, topics.version))
		return nil
	}
	return replace(file, table(rows, topics.version))
}

// output is what a client printed: its version, and the values in their order.
type output struct {
	version string
	values  []string
	err     string // why it did not come to the end; empty if it did
}

// silent is what the programs say when nothing comes: the machine may be busy.
const silent = "nothing came for a while"

// read runs a client on a topic, and again if it heard nothing.
func (c client) read(ctx context.Context, work, broker, topic, isolation string) (o output) {
	for range 3 {
		if o = c.readOnce(ctx, work, broker, topic, isolation); !strings.Contains(o.err, silent) {
			break
		}
	}
	return o
}

func (c client) readOnce(ctx context.Context, work, broker, topic, isolation string) (o output) {
	ctx, cancel := context.WithTimeout(ctx, readLimit)
	defer cancel()
	command := c.command(work, c.name, broker, topic, isolation)
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	var out, errs bytes.Buffer
	cmd.Dir, cmd.Stdout, cmd.Stderr = c.in, &out, &errs
	err := cmd.Run()
	for i, line := range strings.Split(strings.TrimSpace(out.String()), "\n") {
		if i == 0 {
			o.version = strings.TrimPrefix(line, "v")
			continue
		}
		value, unquoted := strconv.Unquote(line)
		if unquoted != nil {
			value = line
		}
		o.values = append(o.values, value)
	}
	if err != nil {
		lines := strings.Split(strings.TrimSpace(errs.String()), "\n")
		o.err = fmt.Sprintf("%v: %s", err, lines[len(lines)-1])
	}
	return o
}

// replace writes the table between its marks.
func replace(file, table string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	const begin, end = "<!-- the table of tools/readers begins -->\n", "<!-- and ends -->"
	head, rest, ok := strings.Cut(string(text), begin)
	_, tail, ends := strings.Cut(rest, end)
	if !ok || !ends {
		return fmt.Errorf("%s lacks the marks of the table", filepath.Base(file))
	}
	return os.WriteFile(file, []byte(head+begin+table+end+tail), 0o644)
}
