package config

import (
	"fmt"
	"net/url"
	"time"
)

// SchemaRegistry is where the schemas are that `message_id.from: avro` and `protobuf` need: a
// registry that speaks Confluent's API. While it does not answer, records of schemas that kdedup
// has not seen yet wait as they do for the store, see `topics[].on_store_outage`; the others go on.
type SchemaRegistry struct {
	// Addresses of one registry, each as an `https` or `http` URL without a password. The next is
	// asked if one does not answer. Required with `message_id.from: avro` or `protobuf`. With
	// Apicurio they end in `/apis/ccompat/v7`.
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
		if from := t.MessageID.needsSchemas(); from != "" && len(r.URLs) == 0 {
			p.add(registryPath+".urls", "", "is required with topics[%d].message_id.from: %s", i,
				from)
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
