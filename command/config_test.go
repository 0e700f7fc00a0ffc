package command

import (
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kdedup/kdedup/config"
)

const sampleFile = `instance: one
kafka:
  brokers: [localhost:9092]
  sasl: {mechanism: plain, username: ann, password: hunter2hunter2}
  tls: {enabled: true}
topics:
  - input: orders
    output: orders.clean
    consumer_group: orders-dedup
    message_id: {from: key}
    dead_letter_topic: orders.dlq
    batch_bytes: 8MiB
`

// sample is in the working directory, which is a new one.
func sample(t *testing.T, name string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(sampleFile), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestConfigPrintTellsWhereEachValueComesFrom(t *testing.T) {
	t.Chdir(t.TempDir())
	t.Setenv("KDEDUP_TOPICS_0_TTL", "48h")
	sample(t, "kdedup.yaml")
	code, text := kdedup(t.Context(), "config", "print", "--format", "json", "--log-level", "warn")
	var settings []effective
	if err := json.Unmarshal([]byte(text), &settings); code != 0 || err != nil {
		t.Fatalf("%d, %v: %s", code, err, text)
	}
	shown := make(map[string]effective)
	for _, s := range settings {
		shown[s.Setting] = s
	}
	for _, want := range []effective{
		{"instance", "one", "line 1"},
		{"kafka.sasl.password", "[hidden]", "line 4"},
		{"topics[0].batch_bytes", "8MiB", "line 12"},
		{"topics[0].ttl", "48h0m0s", "KDEDUP_TOPICS_0_TTL"},
		{"topics[0].fence_topic", "orders-dedup.fence", "derived"},
		{"topics[0].lanes", "2", "default"},
		{"log.level", "warn", "KDEDUP_LOG_LEVEL"},
	} {
		if got := shown[want.Setting]; got != want {
			t.Errorf("got %+v, want %+v", got, want)
		}
	}
	if _, text := kdedup(t.Context(), "config", "print"); strings.Contains(text, "hunter2") ||
		!strings.Contains(text, "kafka.sasl.username") {
		t.Errorf("the table is %s", text)
	}
}

func TestConfigPrintShowsWhatAPresetStandsFor(t *testing.T) {
	path := filepath.Join(t.TempDir(), "kdedup.yaml")
	text := strings.Replace(sampleFile, "{from: key}", "{preset: spring, occurrence: last}", 1)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	code, printed := kdedup(t.Context(), "config", "print", "-c", path)
	lines := make(map[string]bool)
	for line := range strings.Lines(printed) {
		lines[strings.Join(strings.Fields(line), " ")] = true
	}
	for _, want := range []string{
		"topics[0].message_id.preset spring line 10",
		"topics[0].message_id.from header preset spring",
		"topics[0].message_id.name id preset spring",
		"topics[0].message_id.normalize unquote, uuid preset spring",
		"topics[0].message_id.occurrence last line 10",
	} {
		if code != 0 || !lines[want] {
			t.Errorf("exit code %d, no line %q in\n%s", code, want, printed)
		}
	}
}

func TestTheFileIsFound(t *testing.T) {
	t.Chdir(t.TempDir())
	t.Setenv(config.EnvFile, "")
	if _, err := os.Stat(systemFile); err == nil {
		t.Fatalf("%s exists on this machine", systemFile)
	}
	code, text := kdedup(t.Context(), "validate", "--offline")
	if want := "kdedup: there is no configuration: name its file with -c or KDEDUP_CONFIG"; code !=
		exitUsage || !strings.HasPrefix(text, want) {
		t.Errorf("%d: %s", code, text)
	}
	sample(t, "other.yaml")
	t.Setenv(config.EnvFile, "other.yaml")
	if code, text := kdedup(t.Context(), "validate", "--offline"); code != 0 ||
		!strings.HasSuffix(text, "other.yaml is valid: 1 topic\n") ||
		strings.Contains(text, "name="+config.EnvFile) {
		t.Errorf("%d: %s", code, text)
	}
	t.Setenv(config.EnvFile, "")
	sample(t, usualFile)
	if code, text := kdedup(t.Context(), "validate", "--offline"); code != 0 ||
		!strings.HasSuffix(text, "kdedup.yaml is valid: 1 topic\n") {
		t.Errorf("%d: %s", code, text)
	}
}

func TestStandardInputIsReadOnce(t *testing.T) {
	input := strings.NewReader(sampleFile)
	f := configFlags{path: standardInput, input: func() io.Reader { return input }}
	for range 2 {
		if c, err := f.read(); err != nil || c.Instance != "one" {
			t.Errorf("instance %q, %v", c.Instance, err)
		}
	}
	wrong := configFlags{path: standardInput, input: func() io.Reader {
		return strings.NewReader("kafka: 3")
	}}
	if _, err := wrong.read(); err == nil || !strings.HasPrefix(err.Error(),
		"config from standard input: ") {
		t.Error(err)
	}
}

func TestTheSchemaIsPrinted(t *testing.T) {
	code, text := kdedup(t.Context(), "config", "schema")
	if code != 0 || !json.Valid([]byte(text)) || !strings.Contains(text, `"on_replay"`) {
		t.Errorf("%d: %.200s", code, text)
	}
}

func TestWrongCommandLinesSayWhatIsRight(t *testing.T) {
	path := filepath.Join(t.TempDir(), "kdedup.yaml")
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"vaildate"}, `unknown command "vaildate"; did you mean validate?`},
		{[]string{"frobnicate"}, `unknown command "frobnicate"; kdedup --help lists all`},
		{[]string{"skip", "-c", path, "--partition", "x"},
			`--partition must be a whole number, got "x"`},
		{[]string{"skip", "-c", path, "--partition", "99999999999"},
			`--partition is out of range, got "99999999999"`},
		{[]string{"validate", "--offline=maybe"}, `--offline must be true or false, got "maybe"`},
		{[]string{"run", "--log-level", "loud"},
			`--log-level must be debug, info, warn or error, got "loud"`},
		{[]string{"report", "--format", "pdf"}, `--format must be table, json or html, got "pdf"`},
		{[]string{"version", "--format", "xml"}, `--format must be text or json, got "xml"`},
		{[]string{"version", "--json=maybe"}, `--json must be true or false, got "maybe"`},
	} {
		if code, text := kdedup(t.Context(), c.args...); code != exitUsage ||
			text != "kdedup: "+c.want+"\n" {
			t.Errorf("%v: %d: %s", c.args, code, text)
		}
	}
}

func TestAdviceNamesTheFileInUse(t *testing.T) {
	const advice = "it does not exist; run: kdedup setup -c FILE --dry-run"
	for path, want := range map[string]string{
		"":             advice,
		"-":            advice,
		"a/b.yaml":     "it does not exist; run: kdedup setup -c a/b.yaml --dry-run",
		"my file.yaml": "it does not exist; run: kdedup setup -c 'my file.yaml' --dry-run",
		"it's.yaml":    `it does not exist; run: kdedup setup -c 'it'\''s.yaml' --dry-run`,
	} {
		if got := namedFile(advice, path); got != want {
			t.Errorf("with %q: %s", path, got)
		}
	}
}

func TestTheVersionIsAFlagToo(t *testing.T) {
	_, version := kdedup(t.Context(), "version")
	first, _, _ := strings.Cut(version, "\n")
	if _, text := kdedup(t.Context(), "version", "--json=false"); text != version {
		t.Errorf("without JSON it is %q, want %q", text, version)
	}
	if code, text := kdedup(t.Context(), "--version"); code != 0 || text != first+"\n" {
		t.Errorf("%d: %q, want %q", code, text, first)
	}
}

// Whoever puts an entry in front of them has to know.
func TestNumberedOverridesAreToldWhereThereAreSeveralEntries(t *testing.T) {
	const warning = "variables name entries of topics by their numbers"
	one := write(t, []string{"127.0.0.1:1"}, ordersTopic)
	two := write(t, []string{"127.0.0.1:1"}, ordersTopic+"  - {input: payments, output: p.clean, "+
		"consumer_group: p, message_id: {from: key}, on_missing_id: drop}\n")
	for _, c := range []struct {
		path, variable string
		told           bool
	}{
		{one, "KDEDUP_TOPICS_0_TTL", false}, {two, "KDEDUP_TOPICS_1_TTL", true},
		{two, "KDEDUP_TOPICS_PAYMENTS_TTL", false},
	} {
		t.Run(c.variable, func(t *testing.T) {
			t.Setenv(c.variable, "48h")
			code, text := kdedup(t.Context(), "validate", "--offline", "-c", c.path)
			if code != 0 || strings.Contains(text, warning) != c.told || c.told &&
				!strings.Contains(text, "KDEDUP_TOPICS_PAYMENTS_TTL") {
				t.Errorf("%d: %s", code, text)
			}
		})
	}
}
