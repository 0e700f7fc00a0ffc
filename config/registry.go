package config

import (
	"fmt"
	"net/url"
	"strings"
	"time"
	"unicode"
)

// SchemaRegistry is where the schemas of Avro and Protobuf records are. While it does not answer,
// records of schemas that kdedup has not seen yet wait as they do for the store; the others go on.
// `tls` is for `https` only.
type SchemaRegistry struct {
	// `confluent`: one that speaks Confluent's API, as Karapace, Redpanda and Apicurio do.
	// `apicurio`: Apicurio Registry 3 by its own API, for records of its own serializers. `glue`:
	// the AWS Glue schema registry. `azure`: the one of Azure Event Hubs, whose serializers name
	// the schema in the header `content-type`; keys are not read. `files`: no registry, all schemas
	// are in `schemas`.
	//
	// Default: `confluent`.
	Type string `mapstructure:"type"`
	// Files with schemas: Avro schemas as JSON, each with all types that it names, and Protobuf
	// descriptor sets (`protoc --include_imports --descriptor_set_out=FILE`). `7=FILE` is the
	// descriptor set of the registry's schema number 7, for texts that kdedup cannot read, as those
	// of `edition = "2024"`. They are read at the start. Required with `type: files`.
	Schemas []string `mapstructure:"schemas"`
	// With `type: glue`, the region. Empty: that of the environment or of the profile. The
	// credentials are those of AWS's default chain; `urls` replaces the region's address.
	Region string `mapstructure:"region"`
	// With `type: glue`, the registry whose newest schemas `kdedup validate` looks at; a schema has
	// the name of the topic, or that of `message_id.subject`. Empty: `default-registry`.
	RegistryName string `mapstructure:"registry_name"`
	// Where records name their schema. `value`: a zero byte and a number before the value (or the
	// key). `header`: in a header of Confluent's or Apicurio's serializers. `any`: in a header
	// where there is one, or else before the value.
	//
	// Default: `any`.
	IDIn string `mapstructure:"id_in"`
	// With `type: apicurio`, which number stands before a value: `content_id`, or `global_id`
	// (`apicurio.registry.use-id` of the serializers).
	//
	// Default: `content_id`.
	UseID string `mapstructure:"use_id"`
	// With `type: apicurio`, the bytes of that number: 4, or 8 with the serializers of Apicurio 2.
	//
	// Default: 4.
	IDBytes int `mapstructure:"id_bytes"`
	// Addresses of one registry, each as an `https` or `http` URL without a password; the next is
	// asked if one does not answer. Required where an entry of `topics` names `avro` or `protobuf`.
	// Those of Apicurio end in `/apis/ccompat/v7`, or, with `type: apicurio`, behind the port.
	URLs []string `mapstructure:"urls"`
	// Name for basic authentication; needs `password`.
	Username string `mapstructure:"username"`
	// Password of `username`.
	Password Secret `mapstructure:"password"`
	// Token that is sent as `Authorization: Bearer`, in the place of a name.
	Token Secret `mapstructure:"token"`
	// Where tokens come from, in the place of a name and of one `token`.
	OAuth RegistryOAuth `mapstructure:"oauth"`
	// Headers of each request, each as `name=value`. Confluent Cloud wants `target-sr-cluster` and
	// `Confluent-Identity-Pool-Id` beside the tokens of `oauth`.
	Headers []string `mapstructure:"headers"`
	// What `https` trusts, and the client's own certificate. `enabled` is needed for the others,
	// and only with `https`.
	TLS TLS `mapstructure:"tls"`
	// How long one request may take, `100ms` to `1m`.
	Timeout time.Duration `mapstructure:"timeout"`
}

// RegistryOAuth gets tokens as `kafka.sasl.oauth` does, in the place of a name and of one `token`.
type RegistryOAuth struct {
	// The token endpoint, as in `kafka.sasl.oauth.token_url`. Empty: no tokens.
	TokenURL string `mapstructure:"token_url"`
	// The client's name at the token endpoint. Required with `token_url`.
	ClientID string `mapstructure:"client_id"`
	// Required with `token_url`.
	ClientSecret Secret `mapstructure:"client_secret"`
	// Scopes to ask for.
	Scopes []string `mapstructure:"scopes"`
	// The `audience` parameter that some endpoints want.
	Audience string `mapstructure:"audience"`
	// PEM file with the authorities that may sign the endpoint's certificate, read for each token.
	// Empty: the system's.
	CAFile string `mapstructure:"ca_file"`
}

// Grant is how the tokens are asked for.
func (o RegistryOAuth) Grant() OAuth {
	return OAuth{TokenURL: o.TokenURL, ClientID: o.ClientID, ClientSecret: o.ClientSecret,
		Scopes: o.Scopes, Audience: o.Audience, CAFile: o.CAFile}
}

func (o RegistryOAuth) check(p *problems, path string) {
	if o.TokenURL == "" {
		if o.ClientID != "" || o.ClientSecret != "" || len(o.Scopes) > 0 || o.Audience != "" ||
			o.CAFile != "" {
			p.add(path+".token_url", "", "is required with the other settings of oauth")
		}
		return
	}
	checkTokenURL(p, path, o.TokenURL)
	p.require(path+".client_id", o.ClientID)
	p.require(path+".client_secret", o.ClientSecret.Reveal())
	p.readable(path+".ca_file", o.CAFile)
}

// Types of schema registries, places of a schema's name, and Apicurio's numbers.
const (
	RegistryConfluent = "confluent"
	RegistryApicurio  = "apicurio"
	RegistryGlue      = "glue"
	RegistryAzure     = "azure"
	RegistryFiles     = "files"

	IDInAny    = "any"
	IDInValue  = "value"
	IDInHeader = "header"

	UseContentID = "content_id"
	UseGlobalID  = "global_id"
)

// checkFraming is about how records name their schemas.
func (r SchemaRegistry) checkFraming(p *problems) {
	if r.Type != "" {
		oneOf(p, registryPath+".type", r.Type, RegistryConfluent, RegistryApicurio,
			RegistryGlue, RegistryAzure, RegistryFiles)
	}
	if r.IDIn != "" && r.Type != "" && r.Type != RegistryConfluent && r.Type != RegistryApicurio {
		p.add(registryPath+".id_in", "", "belongs to type: confluent and apicurio")
	}
	if r.IDIn != "" {
		oneOf(p, registryPath+".id_in", r.IDIn, IDInAny, IDInValue, IDInHeader)
	}
	if r.Type != RegistryApicurio {
		if r.UseID != "" {
			p.add(registryPath+".use_id", "", "belongs to type: apicurio")
		}
		if r.IDBytes != 0 {
			p.add(registryPath+".id_bytes", "", "belongs to type: apicurio")
		}
		return
	}
	if r.UseID != "" {
		oneOf(p, registryPath+".use_id", r.UseID, UseContentID, UseGlobalID)
	}
	if r.IDBytes != 0 && r.IDBytes != 4 && r.IDBytes != 8 {
		p.add(registryPath+".id_bytes", "", "must be 4 or 8, got %d", r.IDBytes)
	}
}

const registryPath = "schema_registry"

func (r SchemaRegistry) check(p *problems, topics []Topic) {
	for i, t := range topics {
		needs := t.needsSchemas()
		if needs != "" && len(r.URLs) == 0 && r.Type != RegistryFiles && r.Type != RegistryGlue {
			p.add(registryPath+".urls", "", "is required with topics[%d].%s", i, needs)
			break
		}
	}
	r.checkFiles(p, topics)
	r.checkFraming(p)
	plain := false
	for i, text := range r.URLs {
		u, err := url.Parse(text)
		if err != nil || u.Hostname() == "" || u.User != nil || u.RawQuery != "" ||
			u.Scheme != "https" && u.Scheme != "http" {
			p.add(fmt.Sprintf("%s.urls[%d]", registryPath, i), "",
				"must be an https or http URL without a password")
			continue
		}
		plain = plain || u.Scheme == "http"
	}
	if r.Username == "" && r.Password != "" {
		p.add(registryPath+".username", "", "is required with password")
	}
	if r.Username != "" && r.Password == "" {
		p.add(registryPath+".password", "", "is required with username")
	}
	if r.Username != "" && r.Token != "" {
		p.add(registryPath+".token", "leave one of the two out", "excludes username")
	}
	if r.OAuth.TokenURL != "" && (r.Username != "" || r.Token != "") {
		p.add(registryPath+".oauth.token_url", "leave one of the two out",
			"excludes username and token")
	}
	r.OAuth.check(p, registryPath+".oauth")
	for i, header := range r.Headers {
		name, value, _ := strings.Cut(header, "=")
		if value == "" || strings.ContainsFunc(value, unicode.IsControl) || !isHeader(name) ||
			strings.EqualFold(name, "Authorization") {
			p.add(fmt.Sprintf("%s.headers[%d]", registryPath, i), "",
				"must be name=value with the name of a header other than Authorization, got %q",
				name)
		}
	}
	if plain && r.TLS.Enabled {
		p.add(registryPath+".tls.enabled", "write https in urls", "has no effect on http URLs")
	}
	r.TLS.check(p, registryPath+".tls")
	within(p, registryPath+".timeout", r.Timeout, 100*time.Millisecond, time.Minute)
}

// isHeader allows less than RFC 9110 does, and all that is in use.
func isHeader(name string) bool {
	return name != "" && !strings.ContainsFunc(name, func(c rune) bool {
		return c > unicode.MaxASCII || !unicode.IsLetter(c) && !unicode.IsDigit(c) && c != '-' &&
			c != '_'
	})
}

// needsSchemas is a setting that needs a registry, or empty.
func (t Topic) needsSchemas() string {
	if from := t.MessageID.needsSchemas(); from != "" {
		return "message_id.from: " + from
	}
	if setting := t.MessageID.schemaFormat("message_id"); setting != "" {
		return setting
	}
	f := t.Fingerprint
	switch {
	case len(f.Ignore)+len(f.Only) > 0 && hasSchemas(f.Format):
		return "fingerprint.format: " + f.Format
	case hasSchemas(t.OnlyIf.From):
		return "only_if.from: " + t.OnlyIf.From
	}
	return ""
}

// hasSchemas reports whether a place, or a format, needs a registry.
func hasSchemas(kind string) bool { return kind == FromAvro || kind == FromProtobuf }

// needsSchemas is the kind of place that needs a registry, or empty.
func (m MessageID) needsSchemas() string {
	if hasSchemas(m.From) {
		return m.From
	}
	for _, part := range m.Parts {
		if from := part.needsSchemas(); from != "" {
			return from
		}
	}
	return ""
}

// schemaFormat is the format that needs a registry, as a setting, or empty.
func (m MessageID) schemaFormat(path string) string {
	if hasSchemas(m.Format) {
		return path + ".format: " + m.Format
	}
	for i, part := range m.Parts {
		if setting := part.schemaFormat(fmt.Sprintf("%s.parts[%d]", path, i)); setting != "" {
			return setting
		}
	}
	return ""
}
