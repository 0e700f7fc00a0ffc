package config

import (
	"fmt"
	"net/url"
	"time"
)

// SchemaRegistry is where the schemas of Avro and Protobuf records are, for `message_id`,
// `fingerprint` and `only_if`: a registry that speaks Confluent's API. While it does not answer,
// records of schemas that kdedup has not seen yet wait as they do for the store, see
// `topics[].on_store_outage`; the others go on.
type SchemaRegistry struct {
	// Addresses of one registry, each as an `https` or `http` URL without a password. The next is
	// asked if one does not answer. Required where an entry of `topics` names `avro` or `protobuf`.
	// With Apicurio they end in `/apis/ccompat/v7`.
	URLs []string `mapstructure:"urls"`
	// Name for basic authentication; needs `password`. Empty means none.
	Username string `mapstructure:"username"`
	// Password of `username`. It is read at the start.
	Password Secret `mapstructure:"password"`
	// Token that is sent as `Authorization: Bearer`, in the place of a name. It is read at the
	// start.
	Token Secret `mapstructure:"token"`
	// What `https` trusts, and the client's own certificate. `enabled` is needed for the others,
	// and only with `https`.
	TLS TLS `mapstructure:"tls"`
	// How long one request may take, `100ms` to `1m`.
	Timeout time.Duration `mapstructure:"timeout"`
}

const registryPath = "schema_registry"

func (r SchemaRegistry) check(p *problems, topics []Topic) {
	for i, t := range topics {
		if needs := t.needsSchemas(); needs != "" && len(r.URLs) == 0 {
			p.add(registryPath+".urls", "", "is required with topics[%d].%s", i, needs)
			break
		}
	}
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
	if plain && r.TLS.Enabled {
		p.add(registryPath+".tls.enabled", "write https in urls", "has no effect on http URLs")
	}
	r.TLS.check(p, registryPath+".tls")
	within(p, registryPath+".timeout", r.Timeout, 100*time.Millisecond, time.Minute)
}

// needsSchemas is a setting that needs a registry, or empty.
func (t Topic) needsSchemas() string {
	inSchema := func(format string) bool { return format == FormatAvro || format == FormatProtobuf }
	f := t.Fingerprint
	switch from := t.MessageID.needsSchemas(); {
	case from != "":
		return "message_id.from: " + from
	case inSchema(t.MessageID.Format):
		return "message_id.format: " + t.MessageID.Format
	case len(f.Ignore)+len(f.Only) > 0 && inSchema(f.Format):
		return "fingerprint.format: " + f.Format
	case inSchema(t.OnlyIf.From):
		return "only_if.from: " + t.OnlyIf.From
	}
	for i, part := range t.MessageID.Parts {
		if inSchema(part.Format) {
			return fmt.Sprintf("message_id.parts[%d].format: %s", i, part.Format)
		}
	}
	return ""
}

// needsSchemas is the kind of place that needs a registry, or empty.
func (m MessageID) needsSchemas() string {
	if m.From == FromAvro || m.From == FromProtobuf {
		return m.From
	}
	for _, part := range m.Parts {
		if from := part.needsSchemas(); from != "" {
			return from
		}
	}
	return ""
}
