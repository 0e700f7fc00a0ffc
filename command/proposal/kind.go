package proposal

import (
	"fmt"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/command/report"
	"github.com/kdedup/kdedup/dedup/messageid"
	"github.com/kdedup/kdedup/internal/jsonpath"
)

// Kind is what wrote the records of a topic, by a name that message_id.preset may have.
type Kind struct {
	Name     string
	Format   string // of the values, if the preset is to be told
	Have, Of int    // records that have the signs of the kind, and those that have a value
}

// Seen tells on how many records the signs are.
func (k Kind) Seen() string {
	return fmt.Sprintf("%s of %s have what %s writes", report.Number(int64(k.Have)),
		plural(k.Of, "record", "records"), k.Name)
}

// signs are what records of a kind have, and others hardly: each of the headers, in any case, and
// each of the fields. A kind may have several.
type signs struct {
	kind    string
	headers []string
	fields  []string
	format  bool // the preset reads values with schemas, too
	control bool // beside those of the kind, such records are of it, too; alone they say nothing
}

var kinds = []signs{
	{kind: "debezium", fields: []string{"op", "source.connector", "source.ts_ms"}, format: true},
	{kind: "debezium", fields: []string{"payload.op", "payload.source.connector",
		"payload.source.ts_ms"}},
	{kind: "ticdc", fields: []string{"source.connector", "source.commit_ts", "source.cluster_id"}},
	{kind: "ticdc", fields: []string{"payload.source.connector", "payload.source.commit_ts",
		"payload.source.cluster_id"}},
	{kind: "ticdc", fields: []string{"isDdl", "es", "_tidb.commitTs"}},
	{kind: "ticdc", fields: []string{"isDdl", "_tidb.watermarkTs"}, control: true},
	{kind: "canal", fields: []string{"isDdl", "es", "database", "table", "type", "sql"}},
	{kind: "maxwell", fields: []string{"database", "table", "type", "ts", "xid"}},
	{kind: "maxwell", fields: []string{"database", "table", "type", "ts", "position"}},
	{kind: "maxwell", fields: []string{"database", "table", "type", "ts"}, control: true},
	{kind: "cockroachdb", fields: []string{"after", "updated"}, format: true},
	{kind: "cockroachdb", fields: []string{"__crdb__.updated"}, format: true},
	{kind: "cockroachdb", fields: []string{"op", "source.changefeed_sink", "source.ts_hlc"},
		format: true},
	{kind: "cockroachdb", fields: []string{"payload.op", "payload.source.changefeed_sink",
		"payload.source.ts_hlc"}},
	{kind: "cockroachdb", fields: []string{"resolved"}, control: true, format: true},
	{kind: "mongodb", fields: []string{"_id._data", "operationType", "ns.db"}},
	{kind: "dms", fields: []string{"metadata.record-type", "metadata.operation",
		"metadata.table-name", "metadata.schema-name"}},
	{kind: "debezium_outbox", headers: []string{"id", "eventType"}},
	{kind: "cloudevents", headers: []string{"ce_id", "ce_source", "ce_specversion"}},
	{kind: "cloudevents", fields: []string{"specversion", "id", "source", "type"}},
	{kind: "stripe", fields: []string{"id", "object", "api_version", "pending_webhooks"}},
	{kind: "shopify", headers: []string{"x-shopify-topic", "x-shopify-event-id"}},
	{kind: "github", headers: []string{"x-github-delivery", "x-github-event"}},
	{kind: "spring", headers: []string{"id", "spring_json_header_types"}},
	{kind: "segment", fields: []string{"messageId", "sentAt", "type"}},
	{kind: "snowplow", fields: []string{"event_id", "collector_tstamp", "platform"}},
}

// nearlyAll of the records must have the signs of a kind.
const nearlyAll = 0.9

// Kind finds out what wrote the records, if it is known and its preset finds their IDs.
func (s Sample) Kind() (k Kind, known bool) {
	have, control := make(map[string]int), make(map[string]int)
	views := s.views()
	for i, r := range s.Records {
		if r.Value == nil {
			continue
		}
		k.Of++
		fields := fieldsOf(views[i].Value)
		seen := make(map[string]bool)
		for _, signs := range kinds {
			if len(signs.fields) > 0 && !signs.readable(s.Schemas) {
				continue
			}
			if !seen[signs.kind] && signs.on(r, fields) &&
				(s.Finds == nil || s.Finds(signs.kind, r)) {
				seen[signs.kind] = true
				if signs.control {
					control[signs.kind]++
				} else {
					have[signs.kind]++
				}
			}
		}
	}
	for _, signs := range kinds { // in this order, and not in that of the map
		n := have[signs.kind]
		if n > 0 {
			n += control[signs.kind]
		}
		if n > k.Have && share(n, k.Of) >= nearlyAll {
			k.Name, k.Have, k.Format = signs.kind, n, ""
			if s.Schemas.readsValues() && signs.format {
				k.Format = s.Schemas.format
			}
		}
	}
	if k.Name != "" && s.Finds != nil && !lately(s.Records, newest(s.Records), func(i int) bool {
		return s.Finds(k.Name, s.Records[i])
	}) {
		return Kind{Of: k.Of}, false
	}
	return k, k.Name != ""
}

// readable reports whether the preset reads values with these schemas.
func (s signs) readable(by *Schemas) bool {
	return !by.readsValues() || s.format && by.format != messageid.FromJSONSchema
}

func (s signs) on(r *kgo.Record, fields map[string]bool) bool {
	for _, name := range s.headers {
		if !slices.ContainsFunc(r.Headers, func(h kgo.RecordHeader) bool {
			return strings.EqualFold(h.Key, name)
		}) {
			return false
		}
	}
	for _, path := range s.fields {
		if !fields[path] {
			return false
		}
	}
	return true
}

// fieldsOf are the paths of a document, also of its objects.
func fieldsOf(value []byte) map[string]bool {
	fields := make(map[string]bool)
	if object, ok := jsonpath.Object(value); ok {
		jsonpath.EachField(object, 1, func(path string, _ any) {
			for fields[path] = true; strings.Contains(path, "."); fields[path] = true {
				path = path[:strings.LastIndex(path, ".")]
			}
		})
	}
	return fields
}
