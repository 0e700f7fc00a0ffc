package e2e_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kdedup/kdedup/internal/testkit"
)

// A person with a broker and no documents comes from init to a clean topic by the commands that
// init prints.
func TestInitLeadsToACleanTopic(t *testing.T) {
	t.Parallel()
	brokers := testkit.Kafka(t)
	for _, store := range []string{"embedded", "kafka"} {
		t.Run(store, func(t *testing.T) {
			t.Parallel()
			d := prepare(t, place{brokers: brokers, store: embeddedStore(t)}, exactlyOnce)
			d.produce(5000, 27)
			directory := t.TempDir()
			d.config = filepath.Join(directory, "kdedup.yaml")
			printed := d.inDirectory(directory, "init", "--brokers", strings.Join(brokers, ","),
				"--topic", d.input, "--store", store)
			if !strings.Contains(printed, "message ID {from: header, name: message-id}") {
				t.Fatalf("another ID was proposed:\n%s", printed)
			}
			var commands []string
			for line := range strings.Lines(printed) {
				if line, _, _ = strings.Cut(strings.TrimSpace(line), "#"); strings.HasPrefix(line,
					"kdedup ") {
					commands = append(commands, line)
				}
			}
			last := len(commands) - 1
			if last < 2 || !strings.HasPrefix(commands[last], "kdedup run ") {
				t.Fatalf("the next commands are %q", commands)
			}
			for _, line := range commands[:last] {
				d.inDirectory(directory, strings.Fields(line)[1:]...)
			}
			d.launch(kdedup, "one", "KDEDUP_SERVER_LISTEN=127.0.0.1:0")
			d.waitFor(1)
			d.mustBeClean()
		})
	}
}

// inDirectory runs a command there, as a person does.
func (d *deployment) inDirectory(directory string, args ...string) string {
	d.t.Helper()
	cmd := exec.CommandContext(d.t.Context(), kdedup, args...)
	cmd.Dir = directory
	cmd.Env = append(testkit.Environment(), "KDEDUP_SERVER_LISTEN=127.0.0.1:0",
		// into the file, for the process runs elsewhere
		"KDEDUP_STORE_EMBEDDED_PATH="+filepath.Join(directory, "data"),
		"KDEDUP_STORE_KAFKA_PATH="+filepath.Join(directory, "index"))
	out, err := cmd.CombinedOutput()
	if err != nil {
		text, _ := os.ReadFile(filepath.Join(directory, "kdedup.yaml"))
		d.t.Fatalf("kdedup %s: %v\n%s\n%s", strings.Join(args, " "), err, out, text)
	}
	return string(out)
}
