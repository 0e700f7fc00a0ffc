package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kdedup/kdedup/command/proposal"
	"github.com/kdedup/kdedup/command/report"
	"github.com/kdedup/kdedup/config"
	"github.com/kdedup/kdedup/connect"
)

// registryFlags say where the schemas of the records are. What has no flag is taken from the
// environment.
type registryFlags struct {
	urls, files []string
	kind        string
}

func (f *registryFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringSliceVar(&f.urls, "registry", nil,
		"schema registry of the records' schemas as `URL`, with commas where it has several")
	addChoice(cmd, &f.kind, "registry-type", "what the registry is: `TYPE`", registryTypes...)
	flags.StringSliceVar(&f.files, "schemas", nil,
		"`FILE` with an Avro schema or a descriptor set, with commas; for --registry-type files")
}

var registryTypes = []string{config.RegistryConfluent, config.RegistryApicurio,
	config.RegistryGlue, config.RegistryAzure, config.RegistryFiles}

func (f *registryFlags) given() bool { return f.kind != "" || len(f.urls)+len(f.files) > 0 }

// over lays the flags over what the environment says.
func (f *registryFlags) over(r config.SchemaRegistry) config.SchemaRegistry {
	if f.kind != "" {
		r.Type = f.kind
	}
	if len(f.urls) > 0 {
		r.URLs = f.urls
	}
	if len(f.files) > 0 {
		r.Schemas = f.files
	}
	return r
}

// registrySection writes the settings that are set. A secret is not written: it stays in the
// environment.
func registrySection(r config.SchemaRegistry) string {
	var b strings.Builder
	b.WriteString("schema_registry:\n")
	setting := func(indent, name, value string) {
		if value != "" && value != `""` && value != "[]" {
			b.WriteString(indent + name + ": " + value + "\n")
		}
	}
	setting("  ", "type", quoted(r.Type))
	setting("  ", "urls", quotedList(r.URLs))
	setting("  ", "schemas", quotedList(r.Schemas))
	setting("  ", "region", quoted(r.Region))
	setting("  ", "registry_name", quoted(r.RegistryName))
	setting("  ", "id_in", quoted(r.IDIn))
	setting("  ", "use_id", quoted(r.UseID))
	if r.IDBytes != 0 {
		setting("  ", "id_bytes", strconv.Itoa(r.IDBytes))
	}
	setting("  ", "username", quoted(r.Username))
	setting("  ", "headers", quotedList(r.Headers))
	if r.OAuth.TokenURL != "" {
		b.WriteString("  oauth:\n")
		setting("    ", "token_url", quoted(r.OAuth.TokenURL))
		setting("    ", "client_id", quoted(r.OAuth.ClientID))
		setting("    ", "scopes", quotedList(r.OAuth.Scopes))
		setting("    ", "audience", quoted(r.OAuth.Audience))
		setting("    ", "ca_file", quoted(r.OAuth.CAFile))
	}
	if r.TLS.Enabled {
		b.WriteString("  tls:\n")
		setting("    ", "enabled", "true")
		setting("    ", "ca_file", quoted(r.TLS.CAFile))
		setting("    ", "cert_file", quoted(r.TLS.CertFile))
		setting("    ", "key_file", quoted(r.TLS.KeyFile))
		setting("    ", "server_name", quoted(r.TLS.ServerName))
	}
	return b.String()
}

// registrySecrets are the variables whose values the file does not name.
func registrySecrets(r config.SchemaRegistry) (names []string) {
	for _, secret := range []struct {
		setting string
		value   config.Secret
	}{{"password", r.Password}, {"token", r.Token},
		{"oauth.client_secret", r.OAuth.ClientSecret}} {
		if secret.value != "" {
			names = append(names, config.EnvName("schema_registry."+secret.setting))
		}
	}
	return names
}

// readSchemas is what a registry has of the schemas that the records of a sample name.
type readSchemas struct {
	config.SchemaRegistry
	*proposal.Schemas
	checked config.SchemaRegistry // with what the environment has of secrets
	check   func(context.Context, *connect.Entry) error
	end     func() // of the connections
	doubt   string
}

func (r *readSchemas) close() {
	if r != nil {
		r.end()
	}
}

// fits returns an error for an entry that validate would refuse for the newest schemas.
func (r *readSchemas) fits(ctx context.Context, t config.Topic) error {
	ctx, cancel := context.WithTimeout(ctx, connect.StartTimeout)
	defer cancel()
	e := connect.Entry{Topic: t}
	return r.check(ctx, &e)
}

// withRegistry is a configuration with this registry, as a file would have it.
func (f *connectionFlags) withRegistry(r config.SchemaRegistry) (config.Config, error) {
	return f.draft(registrySection(r) + placeholder)
}

// askSchemas asks a registry for the schemas of the sample. Numbers of Apicurio's may be of two
// kinds and of two lengths: those of the first by which the records can be read.
func (f *connectionFlags) askSchemas(
	ctx context.Context, r config.SchemaRegistry, s proposal.Sample, log *slog.Logger,
) (*readSchemas, error) {
	if seen, is := s.Serialized(); is && r.Type == "" {
		r.Type = seen.Type
	}
	var first error
	var found *readSchemas
	for _, r := range numberings(r) {
		c, err := f.withRegistry(r)
		if err != nil {
			return nil, err
		}
		one, err := askAs(ctx, c, s, log)
		switch {
		case err == nil && found == nil:
			one.SchemaRegistry = r
			found = one
		case err == nil:
			if one.Differs(found.Schemas) {
				found.doubt = fmt.Sprintf("The records can be read with use_id: %s and id_bytes: "+
					"%d, too, by other schemas: look which of the numbers the serializers write.",
					cmp.Or(r.UseID, config.UseContentID), cmp.Or(r.IDBytes, 4))
			}
			one.close()
		case first == nil:
			first = err
		}
	}
	if found == nil {
		return nil, first
	}
	return found, nil
}

func askAs(
	ctx context.Context, c config.Config, s proposal.Sample, log *slog.Logger,
) (*readSchemas, error) {
	ctx, cancel := context.WithTimeout(ctx, connect.StartTimeout)
	defer cancel()
	client, err := connect.Schemas(c, log)
	if err != nil {
		return nil, err
	}
	schemas, err := s.Ask(ctx, client, client.Framing())
	if err != nil {
		client.Close()
		return nil, err
	}
	check := func(ctx context.Context, e *connect.Entry) error {
		return e.CheckSchemas(ctx, client, slog.New(slog.DiscardHandler))
	}
	return &readSchemas{Schemas: schemas, check: check, end: client.Close,
		checked: c.SchemaRegistry}, nil
}

// numberings are what the number before a value may be.
func numberings(r config.SchemaRegistry) (all []config.SchemaRegistry) {
	uses, lengths := []string{r.UseID}, []int{r.IDBytes}
	if r.Type == config.RegistryApicurio && r.UseID == "" {
		uses = []string{"", config.UseGlobalID}
	}
	if r.Type == config.RegistryApicurio && r.IDBytes == 0 {
		lengths = []int{0, 8}
	}
	for _, r.IDBytes = range lengths {
		for _, r.UseID = range uses {
			all = append(all, r)
		}
	}
	return all
}

// noRegistry answers the question for one.
const noRegistry = "none"

// chooseRegistry asks for the registry of what the records name, and reads the schemas. It returns
// nil where nothing is to be asked.
func (f *initFlags) chooseRegistry(
	ctx context.Context, draft config.Config, s proposal.Sample, log *slog.Logger,
) (*readSchemas, error) {
	seen, is := s.Serialized()
	if !is {
		if f.registryFlags.given() && len(s.Records) > 0 {
			fmt.Fprintln(f.talk, "\nNo registry is asked: the records name no schemas that it would "+
				"have to read.")
		}
		return nil, nil
	}
	r := f.registryFlags.over(draft.SchemaRegistry)
	for {
		known := r.HasRegistry() || len(r.Schemas) > 0
		if !known {
			fmt.Fprintf(f.talk, "\n%s.\n", report.Capital(seen.Seen()))
			answer, err := f.askRegistry(ctx, &r, seen.Type)
			if err != nil || answer == noRegistry {
				return nil, err
			}
		}
		found, err := f.askSchemas(ctx, r, s, log)
		if err == nil {
			return found, nil
		}
		if !errors.As(err, new(usageError)) {
			err = fmt.Errorf("--registry: %w", err)
		}
		if !f.retry(wrongAnswer{err}) {
			return nil, err
		}
		r = draft.SchemaRegistry
	}
}

// askRegistry puts answers into r.
func (f *initFlags) askRegistry(
	ctx context.Context, r *config.SchemaRegistry, usual string,
) (answer string, err error) {
	if !f.asks || f.usually { // ask knows no question whose default is to be told
		return noRegistry, nil
	}
	if usual == config.RegistryFiles {
		answer, err = f.ask(ctx, "Files of their schemas, with commas, or none", noRegistry,
			"--schemas")
		if answer != noRegistry {
			r.Type, r.Schemas = usual, commaSeparated(answer)
		}
		return answer, err
	}
	for {
		r.Type, err = f.ask(ctx, "What has their schemas: "+oneOf(registryTypes)+", or none", usual,
			"--registry-type")
		if err != nil || r.Type == noRegistry {
			return noRegistry, err
		}
		if slices.Contains(registryTypes, r.Type) {
			break
		}
		fmt.Fprintf(f.talk, "must be %s, got %q\n", oneOf(registryTypes), r.Type)
	}
	switch r.Type {
	case config.RegistryGlue:
		return r.Type, nil
	case config.RegistryFiles:
		answer, err = f.ask(ctx, "Files, with commas", "", "--schemas")
		r.Schemas = commaSeparated(answer)
		return answer, err
	}
	usualURL := map[string]string{config.RegistryConfluent: "http://localhost:8081",
		config.RegistryApicurio: "http://localhost:8080"}[r.Type]
	answer, err = f.ask(ctx, "URL of the schema registry", usualURL, "--registry")
	r.URLs = commaSeparated(answer)
	return answer, err
}

func commaSeparated(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' })
}

// registryOf is that of the environment and the flags, for a command that asks nobody.
func (f *registryFlags) registryOf(draft config.Config) (config.SchemaRegistry, bool) {
	r := f.over(draft.SchemaRegistry)
	return r, r.HasRegistry() || len(r.Schemas) > 0
}
