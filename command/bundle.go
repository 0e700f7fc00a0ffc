package command

import (
	"archive/tar"
	"cmp"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/kdedup/kdedup/process/build"
)

// bundleFlags say what a bundle is made of.
type bundleFlags struct {
	login
	output string
	log    string
	ids    bool
}

func newBundle() *cobra.Command {
	f := bundleFlags{}
	cmd := &cobra.Command{
		Use:   "bundle [URL]",
		Short: "Pack what a bug report needs into one file",
		Long: "Ask a running kdedup, by default that of this machine, for its status, its settings " +
			"without secrets, its metrics, its\nreadiness and, with server.pprof, its " +
			"goroutines, and pack the answers with the versions into a .tar.gz. --log adds\nthe " +
			"log. Names of topics, hosts and groups are in it, message IDs only with --ids: look " +
			"at it before you send it.",
		Example: "  journalctl -u kdedup --since -1h | kdedup bundle --log -\n" +
			"  kubectl logs kdedup-0 | kdedup bundle --log - http://127.0.0.1:9480",
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.login.check(); err != nil {
				return err
			}
			server, err := f.addressOf(args, "")
			if err != nil {
				return usageError{err}
			}
			return f.run(cmd, server)
		},
	}
	f.login.add(cmd)
	flags := cmd.Flags()
	flags.StringVarP(&f.output, "output", "o", "",
		"the `FILE` to write (default kdedup-bundle-INSTANCE-PORT-TIME.tar.gz)")
	flags.StringVar(&f.log, "log", "", "`FILE` with the log of the process, or - for standard input")
	flags.BoolVar(&f.ids, "ids", false, "keep the message IDs of dropped copies")
	return cmd
}

// member is a file of a bundle.
type member struct {
	name string
	text []byte
}

// pages are what the process is asked for. A process that is not ready is the usual one.
var pages = []struct {
	path, file string
	optional   bool // not every process has it
}{
	{"/api/status", "status.json", false},
	{"/api/config", "config.json", false},
	{"/metrics", "metrics.txt", false},
	{"/readyz", "readyz.txt", false},
	{"/debug/pprof/goroutine?debug=2", "goroutines.txt", true},
}

// mostAtOnce are the bundles of one process in one second.
const mostAtOnce = 9

func (f *bundleFlags) run(cmd *cobra.Command, server string) error {
	out, now := cmd.OutOrStdout(), time.Now().UTC()
	members := []member{{"version.txt", []byte(fmt.Sprintf("%s\n%s/%s\nwritten %s\n",
		versionLine(build.This()), runtime.GOOS, runtime.GOARCH, now.Format(time.RFC3339)))}}
	instance, asked, missing := f.ask(cmd.Context(), server)
	members = append(members, asked...)
	if f.log != "" {
		text, err := f.readLog(cmd.InOrStdin())
		if err != nil {
			return err
		}
		members = append(members, member{"log.txt", text})
	}
	if len(asked) == 0 && f.log == "" {
		return fmt.Errorf("nothing to pack: %w; with --log the log of the process is packed alone",
			missing[0])
	}
	if len(missing) > 0 {
		members = append(members, member{"missing.txt",
			[]byte(errors.Join(missing...).Error() + "\n")})
	}
	path := f.output
	if path == "" {
		at, err := url.Parse(server)
		if err != nil {
			return err
		}
		path = fmt.Sprintf("kdedup-bundle-%s-%s-%s.tar.gz", instance, cmp.Or(at.Port(), at.Scheme),
			now.Format("20060102T150405Z"))
	}
	err := writeBundle(path, members, now)
	name := strings.TrimSuffix(path, ".tar.gz")
	for n := 2; errors.Is(err, os.ErrExist) && f.output == "" && n <= mostAtOnce; n++ {
		path = fmt.Sprintf("%s-%d.tar.gz", name, n)
		err = writeBundle(path, members, now)
	}
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%s has, of %s\n", path, server)
	for _, m := range members {
		fmt.Fprintf(out, "  %-15s %d bytes\n", m.name, len(m.text))
	}
	if len(missing) > 0 {
		fmt.Fprintf(out, "It lacks what the process did not answer: %v\n", missing[0])
	}
	if f.log == "" {
		fmt.Fprintln(out, "It has no log: --log adds one.")
	}
	fmt.Fprintln(out, "Look at it before you send it: it names your topics, groups and hosts.")
	return nil
}

// ask reads the pages. What one of them lacks is told, and stops no other.
func (f *bundleFlags) ask(
	ctx context.Context, server string,
) (instance string, members []member, missing []error) {
	instance = "process"
	for _, p := range pages {
		url := server + p.path
		text, err := f.get(ctx, url, http.StatusOK, http.StatusServiceUnavailable)
		switch {
		case err != nil && p.optional:
			continue
		case err != nil:
			missing = append(missing, err)
			continue
		}
		if p.file == "status.json" {
			if text, instance, err = f.trim(text); err != nil {
				missing = append(missing, fmt.Errorf("%s is no status of kdedup: %w", url, err))
				continue
			}
		}
		members = append(members, member{p.file, text})
	}
	return instance, members, missing
}

// trim takes the message IDs out of a status, which may be personal.
func (f *bundleFlags) trim(text []byte) (trimmed []byte, instance string, err error) {
	var status map[string]any
	if err := json.Unmarshal(text, &status); err != nil {
		return nil, "process", err
	}
	about, _ := status["process"].(map[string]any)
	instance, _ = about["instance"].(string)
	if instance == "" {
		return nil, "process", errors.New("it names no instance")
	}
	if f.ids {
		return text, fileName(instance), nil
	}
	copies, _ := status["dropped_copies"].([]any)
	for _, one := range copies {
		if dropped, is := one.(map[string]any); is {
			dropped["id"] = "[left out]"
		}
	}
	trimmed, err = json.MarshalIndent(status, "", "  ")
	return trimmed, fileName(instance), err
}

// fileName leaves of a name what every file system takes.
func fileName(name string) string {
	return strings.Map(func(r rune) rune {
		if r == '-' || r == '.' || r == '_' || '0' <= r && r <= '9' || 'a' <= r && r <= 'z' ||
			'A' <= r && r <= 'Z' {
			return r
		}
		return '_'
	}, name)
}

// mostOfLog is the end of a log that is packed.
const mostOfLog = 64 << 20

func (f *bundleFlags) readLog(input io.Reader) ([]byte, error) {
	if f.log != "-" {
		file, err := os.Open(f.log)
		if err != nil {
			return nil, usageError{fmt.Errorf("--log: %w", err)}
		}
		defer file.Close()
		input = file
	}
	var end []byte
	part := make([]byte, 1<<20)
	for {
		n, err := input.Read(part)
		end = append(end, part[:n]...)
		if len(end) > 2*mostOfLog {
			end = append(end[:0], end[len(end)-mostOfLog:]...)
		}
		if err == io.EOF {
			return end[max(0, len(end)-mostOfLog):], nil
		}
		if err != nil {
			return nil, fmt.Errorf("read the log: %w", err)
		}
	}
}

// writeBundle writes the file for its owner alone, whole or not at all.
func writeBundle(path string, members []member, now time.Time) (err error) {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("write the bundle: %w", err)
	}
	defer func() {
		if err = errors.Join(err, file.Close()); err != nil {
			_ = os.Remove(path)
			err = fmt.Errorf("write the bundle %s: %w", path, err)
		}
	}()
	packed := gzip.NewWriter(file)
	archive := tar.NewWriter(packed)
	for _, m := range members {
		err := archive.WriteHeader(&tar.Header{Name: "kdedup-bundle/" + m.name, Mode: 0o600,
			Size: int64(len(m.text)), ModTime: now, Format: tar.FormatPAX})
		if err != nil {
			return err
		}
		if _, err := archive.Write(m.text); err != nil {
			return err
		}
	}
	return errors.Join(archive.Close(), packed.Close())
}
