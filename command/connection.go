package command

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kdedup/kdedup/config"
)

// connectionFlags say how to reach a Kafka where no file does. What has no flag is taken from the
// environment, as it is with a file.
type connectionFlags struct {
	brokers      []string
	tls          config.TLS
	sasl         config.SASL
	passwordFile string
}

func (f *connectionFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringSliceVar(&f.brokers, "brokers", nil, "some brokers as `HOST:PORT`, with commas")
	flags.BoolVar(&f.tls.Enabled, "tls", false, "encrypt the connections to the brokers")
	flags.StringVar(&f.tls.CAFile, "tls-ca", "",
		"PEM `FILE` with the authorities that may sign the brokers' certificates")
	flags.StringVar(&f.tls.CertFile, "tls-cert", "", "PEM `FILE` with a certificate to log in with")
	flags.StringVar(&f.tls.KeyFile, "tls-key", "", "PEM `FILE` with its key")
	addChoice(cmd, &f.sasl.Mechanism, "sasl-mechanism", "how to log in to the brokers: `MECHANISM`",
		config.SASLPlain, config.SASLScram256, config.SASLScram512, config.SASLOAuthBearer,
		config.SASLAWS)
	flags.StringVar(&f.sasl.Username, "sasl-username", "", "`NAME` to log in with")
	flags.StringVar(&f.passwordFile, "sasl-password-file", "",
		"`FILE` with the password (or set "+config.EnvName("kafka.sasl.password")+")")
}

// section is the section kafka of a file.
func (f *connectionFlags) section() string {
	k := config.Kafka{Brokers: f.brokers, TLS: f.tls, SASL: f.sasl}
	k.TLS.Enabled = k.TLS != (config.TLS{}) // a certificate asks for it
	return kafkaSection(k, f.passwordFile)
}

// draft is a configuration of the flags and the environment. The topics are as a file has them.
func (f *connectionFlags) draft(topics string) (config.Config, error) {
	c, _, err := config.Parse("of the flags", []byte(f.section()+topics), os.Environ())
	if err != nil {
		return config.Config{}, usageError{fmt.Errorf("%w%s", err, flagsFor(err))}
	}
	return c, nil
}

// flagsFor names the flags for the settings that an error is about.
func flagsFor(err error) (text string) {
	for _, row := range [][2]string{
		{"kafka.brokers", "--brokers"}, {"kafka.output.brokers", "--clean-brokers"},
		{"kafka.tls.ca_file", "--tls-ca"},
		{"kafka.tls.cert_file", "--tls-cert"}, {"kafka.tls.key_file", "--tls-key"},
		{"kafka.sasl.mechanism", "--sasl-mechanism"}, {"kafka.sasl.username", "--sasl-username"},
		{"kafka.sasl.password", "--sasl-password-file"},
		{"schema_registry.urls", "--registry"}, {"schema_registry.type", "--registry-type"},
		{"schema_registry.schemas", "--schemas"},
		{"kafka.sasl.oauth.token_url", config.EnvName("kafka.sasl.oauth.token_url")},
		{"kafka.sasl.oauth.client_id", config.EnvName("kafka.sasl.oauth.client_id")},
		{"kafka.sasl.oauth.client_secret", config.EnvName("kafka.sasl.oauth.client_secret")},
	} {
		if regexp.MustCompile(`(^|\W)` + regexp.QuoteMeta(row[0]) + `\W`).MatchString(err.Error()) {
			text += fmt.Sprintf("\n%s is set by %s", row[0], row[1])
		}
	}
	return text
}

// kafkaSection writes the settings that are set. A secret is not written: it stands in a file, or
// in the environment.
func kafkaSection(k config.Kafka, passwordFile string) string {
	var b strings.Builder
	b.WriteString("kafka:\n")
	fmt.Fprintf(&b, "  brokers: %s\n", quotedList(k.Brokers))
	section := func(indent, name string, settings ...[2]string) {
		var set []string
		for _, s := range settings {
			if s[1] != "" && s[1] != `""` && s[1] != "[]" {
				set = append(set, indent+"  "+s[0]+": "+s[1]+"\n")
			}
		}
		if len(set) > 0 {
			b.WriteString(indent + name + ":\n" + strings.Join(set, ""))
		}
	}
	if k.TLS.Enabled {
		section("  ", "tls", [2]string{"enabled", "true"},
			[2]string{"ca_file", quoted(k.TLS.CAFile)},
			[2]string{"cert_file", quoted(k.TLS.CertFile)},
			[2]string{"key_file", quoted(k.TLS.KeyFile)},
			[2]string{"server_name", quoted(k.TLS.ServerName)})
	}
	if s := k.SASL; s.Mechanism != "" || s.Username != "" || passwordFile != "" {
		password := [2]string{}
		if passwordFile != "" {
			password = [2]string{"password", quoted("file:" + passwordFile)}
		}
		section("  ", "sasl", [2]string{"mechanism", quoted(s.Mechanism)},
			[2]string{"username", quoted(s.Username)}, password)
		section("    ", "oauth", [2]string{"token_url", quoted(s.OAuth.TokenURL)},
			[2]string{"client_id", quoted(s.OAuth.ClientID)},
			[2]string{"scopes", quotedList(s.OAuth.Scopes)},
			[2]string{"audience", quoted(s.OAuth.Audience)},
			[2]string{"extensions", quotedList(s.OAuth.Extensions)},
			[2]string{"ca_file", quoted(s.OAuth.CAFile)})
		section("    ", "aws", [2]string{"profile", quoted(s.AWS.Profile)},
			[2]string{"role_arn", quoted(s.AWS.RoleARN)})
	}
	return b.String()
}

var plainText = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_./-]*$`)

// wordsOfYAML are not text where they stand alone.
var wordsOfYAML = []string{"true", "false", "null", "yes", "no", "on", "off", "y", "n"}

// quoted is a text as it stands in a file.
func quoted(text string) string {
	if plainText.MatchString(text) && !slices.Contains(wordsOfYAML, strings.ToLower(text)) {
		return text
	}
	var b strings.Builder
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(strings.ReplaceAll(text, "${", "$${")); err != nil {
		panic(err) // a text can be encoded
	}
	return strings.TrimSpace(b.String())
}

func quotedList(texts []string) string {
	var all []string
	for _, text := range texts {
		all = append(all, quoted(text))
	}
	return "[" + strings.Join(all, ", ") + "]"
}

// chosenID is a place that --id names.
type chosenID struct {
	config.MessageID
	text string
}

// idForms are those of --id.
const idForms = "header:NAME, key, json:PATH, avro:PATH, protobuf:PATH, json_schema:PATH (each " +
	"of these four with _key for a field of the key, as json_key:PATH) or value_hash"

func (c *chosenID) String() string { return c.text }

// Type implements pflag.Value.
func (c *chosenID) Type() string { return "string" }

// Set implements pflag.Value.
func (c *chosenID) Set(text string) error {
	from, rest, has := strings.Cut(text, ":")
	m := config.MessageID{From: from}
	format, ofKey := strings.CutSuffix(from, "_key")
	switch {
	case from == config.FromHeader:
		m.Name = rest
	case slices.Contains([]string{config.FromJSON, config.FromAvro, config.FromProtobuf,
		config.FromJSONSchema}, format):
		if m.From, m.Path = format, rest; ofKey {
			m.Part = config.PartKey
		}
	}
	simple := from == config.FromKey || from == config.FromValueHash
	if simple == has || !simple && m.Name == "" && m.Path == "" {
		return errors.New("must be " + idForms)
	}
	c.MessageID, c.text = m, text
	return nil
}

func (c *chosenID) given() bool { return c.From != "" }
