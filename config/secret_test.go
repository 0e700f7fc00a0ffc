package config

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"
)

func TestSecretNeverPrints(t *testing.T) {
	const plain = "hunter2"
	marshal := func(f func(any) ([]byte, error), v any) string {
		text, err := f(v)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	logged := func(handler func(*bytes.Buffer) slog.Handler, v any) string {
		var out bytes.Buffer
		slog.New(handler(&out)).Info("loaded", "value", v)
		return out.String()
	}
	text := func(b *bytes.Buffer) slog.Handler { return slog.NewTextHandler(b, nil) }
	asJSON := func(b *bytes.Buffer) slog.Handler { return slog.NewJSONHandler(b, nil) }
	secret := Secret(plain)
	inside := SASL{Mechanism: "plain", Username: "u", Password: secret}

	for _, v := range []any{secret, &secret, inside, &inside, []Secret{secret},
		map[string]Secret{"a": secret}} {
		printed := map[string]string{
			"JSON":      marshal(json.Marshal, v),
			"YAML":      marshal(yaml.Marshal, v),
			"slog text": logged(text, v),
			"slog JSON": logged(asJSON, v),
		}
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "% x", "%d",
			"%10.3s", "%t", "%U"} {
			printed[verb] = fmt.Sprintf(verb, v)
		}
		for how, got := range printed {
			if strings.Contains(got, plain) || strings.Contains(strings.ToLower(got),
				fmt.Sprintf("%x", plain)) || strings.Contains(got, "104 117") {
				t.Errorf("%T as %s shows the secret: %s", v, how, got)
			}
		}
	}
	if got := marshal(xml.Marshal, secret); strings.Contains(got, plain) {
		t.Errorf("as XML: %s", got)
	}
}

func TestSecretShowsWhetherItIsSet(t *testing.T) {
	tests := []struct {
		secret                          Secret
		text, quoted, json, yaml, slogs string
	}{
		{"hunter2", "[hidden]", `"[hidden]"`, `"[hidden]"`, "'[hidden]'\n", "[hidden]"},
		{"", "", `""`, `""`, "\"\"\n", ""},
	}
	for _, test := range tests {
		asJSON, _ := json.Marshal(test.secret)
		asYAML, _ := yaml.Marshal(test.secret)
		got := []string{
			test.secret.String(), fmt.Sprint(test.secret), fmt.Sprintf("%s", test.secret),
			test.secret.GoString(),
			fmt.Sprintf("%#v", test.secret), fmt.Sprintf("%q", test.secret), string(asJSON),
			string(asYAML), test.secret.LogValue().String(),
		}
		want := []string{
			test.text, test.text, test.text, test.quoted,
			test.quoted, test.quoted, test.json, test.yaml, test.slogs,
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}

// withPassword is a file with SASL, whose password stands in line 5.
func withPassword(password string) string {
	return strings.Replace(minimal, "topics:", "  sasl:\n    password: "+password+
		"\n    mechanism: plain\n    username: u\ntopics:", 1)
}

func TestSecretsFromFiles(t *testing.T) {
	tests := []struct{ name, content, want string }{
		{"with a newline", "hunter2\n", "hunter2"},
		{"with a Windows line end", "hunter2\r\n", "hunter2"},
		{"without a newline", "hunter2", "hunter2"},
		{"with spaces and two newlines", " hunter2 \n\n", " hunter2 \n"},
		{"with something like a variable", "${HOME}\n", "${HOME}"},
		{"with a byte order mark", "\ufeffhunter2\n", "hunter2"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "password")
			if err := os.WriteFile(path, []byte(test.content), 0o600); err != nil {
				t.Fatal(err)
			}
			dir := "DIR=" + filepath.Dir(path)
			for how, c := range map[string]Config{
				"the file":   mustLoad(t, withPassword("'file:${DIR}/password'"), dir),
				"a variable": mustLoad(t, withPassword("${P}"), "P=file:"+path),
				"an override": mustLoad(t, withPassword("x"), "KDEDUP_KAFKA_SASL_PASSWORD=file:"+
					path),
				"the file, raw": mustLoad(t, withPassword("file:"+path)),
			} {
				if got := c.Kafka.SASL.Password.Reveal(); got != test.want {
					t.Errorf("through %s: %q, want %q", how, got, test.want)
				}
			}
		})
	}
}

func TestSecretsThatCannotBeRead(t *testing.T) {
	dir := t.TempDir()
	empty, huge, missing := filepath.Join(dir, "empty"), filepath.Join(dir, "huge"),
		filepath.Join(dir, "missing")
	wide, marked := filepath.Join(dir, "wide"), filepath.Join(dir, "marked")
	for path, content := range map[string][]byte{empty: []byte("\n"),
		huge: make([]byte, maxSecretBytes+1), wide: []byte("\xff\xfeh\x00\n\x00"),
		marked: []byte("\ufeff\n")} {
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	tests := []struct{ name, password, want string }{
		{"missing", "file:" + missing, "read secret: open " + missing +
			": no such file or directory"},
		{"a folder", "file:" + dir, "read secret: read " + dir + ": is a directory"},
		{"empty", "file:" + empty, "read secret: " + empty + " is empty"},
		{"empty behind a byte order mark", "file:" + marked, "read secret: " + marked +
			" is empty"},
		{"in UTF-16", "file:" + wide, "read secret: " + wide + " is written in UTF-16; save it " +
			"as UTF-8"},
		{"huge", "file:" + huge, "read secret: " + huge + " is longer than 65536 bytes"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got := problemsOf(t, withPassword(test.password))
			if diff := cmp.Diff("kafka.sasl.password (line 5): "+test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// A wrong password must not be shown by the error about it.
func TestErrorsDoNotShowSecrets(t *testing.T) {
	tests := []struct{ name, password, want string }{
		{"a number", "0123", "must be text, got a number; put it in quotes"},
		{"a date", "2024-01-01", "must be text, got a date; put it in quotes"},
		{"a mapping", "{a: hunter2}", "must be text, got a mapping"},
		{"a broken variable", "'${hunter2'", "has ${ without the name of an environment variable " +
			"and }; write $${ for the text ${"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if diff := cmp.Diff(
				"kafka.sasl.password (line 5): "+test.want,
				problemsOf(t, withPassword(test.password)),
			); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// A secret that stands where it does not belong is what the error about that setting got.
func TestErrorsNameVariablesInPlaceOfTheirValues(t *testing.T) {
	env := []string{"TOKEN=hunter2\"\n%d", "NUMBER=no9876"}
	text := `
kafka: {brokers: ["a b ${TOKEN}"]}
topics:
  - {input: "in ${TOKEN}", output: "${TOKEN}", consumer_group: g, message_id: {from: "${TOKEN}", name: x}, ttl: "${TOKEN}", lanes: "${NUMBER}"}
`
	path := filepath.Join(t.TempDir(), "kdedup.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := Load(path, env)
	if err == nil {
		t.Fatal("no error")
	}
	for _, secret := range []string{"hunter2", "9876"} {
		if strings.Contains(err.Error(), secret) {
			t.Errorf("the error shows %s:\n%v", secret, err)
		}
	}
	for _, want := range []string{`brokers[0]`, `got "in ${TOKEN}"`, `.ttl`, `got "${NUMBER}"`} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error lacks %s:\n%v", want, err)
		}
	}
}
