package command

import (
	"strings"
	"time"

	"github.com/kdedup/kdedup/command/proposal"
	"github.com/kdedup/kdedup/command/report"
	"github.com/kdedup/kdedup/config"
	"github.com/kdedup/kdedup/dedup/messageid"
)

// plan is what a new file says.
type plan struct {
	kafka        config.Kafka
	passwordFile string
	store        string
	hosts        []string
	index        string // directory of the store's files here
	input        string
	output       string
	group        string
	id           config.MessageID
	seen         []string     // what of the records speaks for it
	spellings    string       // sentences about IDs in more than one spelling; mostly empty
	ignore       []string     // of fingerprint
	trusted      bool         // nothing else than the ID is compared
	tombstones   bool         // pass as they are
	schemas      *readSchemas // nil: none
	cutOff       int          // documents that are not whole
	ttl          time.Duration
	why          []string // of the ttl
}

// commented puts a text before a setting, in lines that fit on a screen.
func commented(indent, text string) string {
	var b strings.Builder
	const width = 100
	line := indent + "#"
	for _, word := range strings.Fields(text) {
		if len(line)+1+len(word) > width && line != indent+"#" {
			b.WriteString(line + "\n")
			line = indent + "#"
		}
		line += " " + word
	}
	if line != indent+"#" {
		b.WriteString(line + "\n")
	}
	return b.String()
}

// text is the file.
func (p plan) text() string {
	var b strings.Builder
	b.WriteString(commented("", "The pipeline of the topic "+p.input+", as kdedup init proposes "+
		"it. docs/configuration.md has all settings, and kdedup config print shows those in effect."))
	b.WriteString("\n")
	for _, secret := range p.missingSecrets() {
		b.WriteString(commented("", "The environment must have "+secret+
			", as it had when this was written."))
	}
	b.WriteString(kafkaSection(p.kafka, p.passwordFile) + "\n")
	b.WriteString(p.storeSection() + "\n")
	if p.schemas != nil {
		b.WriteString(commented("", "Where the schemas of the records are. "+p.schemas.doubt))
		b.WriteString(registrySection(p.schemas.SchemaRegistry) + "\n")
	}
	b.WriteString(p.topics())
	return b.String()
}

// missingSecrets are the variables whose values the file does not name.
func (p plan) missingSecrets() (names []string) {
	if p.kafka.SASL.Password != "" && p.passwordFile == "" {
		names = append(names, config.EnvName("kafka.sasl.password"))
	}
	if p.kafka.SASL.OAuth.ClientSecret != "" {
		names = append(names, config.EnvName("kafka.sasl.oauth.client_secret"))
	}
	if p.schemas != nil {
		names = append(names, registrySecrets(p.schemas.SchemaRegistry)...)
	}
	return names
}

// format is that of the values, for what compares their fields.
func (p plan) format() string {
	if p.schemas == nil || p.schemas.Format() == config.FromJSONSchema {
		return ""
	}
	return p.schemas.Format()
}

// registry is nil where there is none.
func (p plan) registry() messageid.Registry {
	if p.schemas == nil {
		return nil
	}
	return p.schemas.Schemas
}

var storeComments = map[string]string{
	config.StoreEmbedded: "The claims are files of this one process: keep the directory. " +
		"Processes share a store of type kafka, cassandra, redis or postgres; docs/stores.md " +
		"compares them, and kdedup migrate moves the claims later.",
	config.StoreKafka: "The claims are records of a topic beside the input, which kdedup setup " +
		"makes. Each process has an index of them, and may lose it. See docs/stores.md.",
	config.StoreCassandra: "The claims are rows of Cassandra. kdedup setup makes the keyspace " +
		"with one copy of each: in production set replication and local_dc, see docs/stores.md.",
	config.StoreRedis: "The claims are keys of Redis, whose settings say what they survive, see " +
		"docs/stores.md.",
	config.StorePostgres: "The claims are rows of PostgreSQL. The database must exist; kdedup " +
		"setup makes the tables. See docs/stores.md.",
}

func (p plan) storeSection() string {
	text := commented("", storeComments[p.store]) + "store:\n  type: " + p.store + "\n"
	hosts := quotedList(p.hosts)
	switch p.store {
	case config.StoreEmbedded:
		return text + "  embedded: {path: " + quoted(p.index) + "}\n"
	case config.StoreKafka:
		return text + "  kafka: {path: " + quoted(p.index) + "}\n"
	case config.StoreCassandra:
		return text + "  cassandra: {hosts: " + hosts + "}\n"
	case config.StoreRedis:
		return text + "  redis: {addresses: " + hosts + "}\n"
	}
	return text + "  postgres: {hosts: " + hosts + "}\n"
}

// beside names a topic after the clean one: two pipelines of one input must not share letters.
func (p plan) beside(suffix string) string {
	return strings.TrimSuffix(p.output, ".clean") + suffix
}

func (p plan) topics() string {
	var b strings.Builder
	setting := func(comment, name, value string) {
		b.WriteString(commented("    ", comment) + "    " + name + ": " + value + "\n")
	}
	b.WriteString("topics:\n  - input: " + quoted(p.input) + "\n")
	setting("Consumers read this one, with isolation.level=read_committed: docs/readers.md has what "+
		"that is in each client, and which need delivery: at_least_once. kdedup setup makes it.",
		"output", quoted(p.output))
	setting("", "consumer_group", quoted(p.group))
	b.WriteString("\n")
	setting("Where a record has its ID. "+sentences(p.seen)+" "+p.spellings, "message_id",
		idText(p.id))
	setting("Records without an ID go here, and records that the output refuses.",
		"dead_letter_topic", quoted(p.beside(".dlq")))
	setting("A record with the ID of an earlier one, and another key or value, goes there, too. By "+
		"default it is dropped, and kept nowhere.", "on_conflict", string(config.ActionDeadLetter))
	b.WriteString(commented("    ", "Copies are counted and kept nowhere. With the next line, and "+
		"kdedup setup, those dropped from then on go to a topic of their own, to read and to send "+
		"again. A process that runs takes the line by itself."))
	b.WriteString("    # duplicates_topic: " + quoted(p.beside(".duplicates")) + "\n")
	if p.cutOff > 0 {
		setting("In the sample "+records(p.cutOff)+" had a value that was cut off. With whole, "+
			"such a value has no ID, so that it cannot take that of its whole copy.", "documents",
			string(config.DocumentsWhole))
	}
	if len(p.ignore) > 0 {
		format := ""
		if p.format() != "" {
			format = "format: " + p.format() + ", "
		}
		setting("Copies differ in these fields, which are written when a message is sent. Without "+
			"this they would be conflicts.", "fingerprint", "{"+format+"ignore: "+
			quotedList(p.ignore)+"}")
	}
	if p.trusted {
		setting("Copies say the same in other bytes, as those of another version of their schema or "+
			"with its ID in another place. The ID says all that counts.", "fingerprint", "none")
	}
	if p.tombstones {
		setting("There are tombstones, which have no fields: they pass as they are.",
			"on_tombstone", string(config.ActionForward))
	}
	b.WriteString("\n")
	setting("How long an ID is remembered. A copy that comes later is a new message. "+
		sentences(p.why), "ttl", report.WriteTTL(p.ttl))
	return b.String()
}

func sentences(all []string) string { return strings.Join(all, " ") }

// idText is a message ID as a file has it.
func idText(m config.MessageID) string {
	if m.Preset != "" {
		if m.Format != "" {
			return "{preset: " + m.Preset + ", format: " + m.Format + "}"
		}
		return "{preset: " + m.Preset + "}"
	}
	settings := []string{"from: " + m.From}
	for _, s := range [][2]string{{"name", m.Name}, {"path", m.Path}, {"part", m.Part}} {
		if s[1] != "" {
			settings = append(settings, s[0]+": "+quoted(s[1]))
		}
	}
	if len(m.Normalize) > 0 {
		settings = append(settings, "normalize: ["+strings.Join(m.Normalize, ", ")+"]")
	}
	if len(m.Parts) > 0 {
		var parts []string
		for _, part := range m.Parts {
			parts = append(parts, idText(part))
		}
		settings = append(settings, "parts: ["+strings.Join(parts, ", ")+"]")
	}
	return "{" + strings.Join(settings, ", ") + "}"
}

// messageID is a candidate as the configuration has it.
func messageID(c *proposal.Candidate) config.MessageID {
	if len(c.Places) == 1 {
		return placeID(c.Places[0])
	}
	m := config.MessageID{From: config.FromComposite}
	for _, p := range c.Places {
		m.Parts = append(m.Parts, placeID(p))
	}
	return m
}

func placeID(p proposal.Place) config.MessageID {
	return config.MessageID{From: p.From, Name: p.Name, Path: p.Path, Part: p.Part}
}
