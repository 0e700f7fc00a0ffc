package messageid

import (
	"strings"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/dedup"
)

// FlatPrefix begins the names of what Debezium's ExtractNewRecordState adds to a row.
const FlatPrefix = "__"

// contextPrefix begins the names of headers that Debezium's connectors write to each record.
const contextPrefix = "__debezium.context."

// IsFlat reports whether a record is a row that Debezium's ExtractNewRecordState has taken out of
// its change: it has what Debezium adds, and is no envelope. Equal rows are states of a row, and
// not copies.
func IsFlat(r *kgo.Record) bool {
	signed := false
	for _, h := range r.Headers {
		signed = signed || strings.HasPrefix(h.Key, contextPrefix) || h.Key == FlatPrefix+"op"
	}
	if len(r.Value) == 0 {
		return false
	}
	doc, _ := unframed(r.Value)
	if payload, wrapped := payloadOf(doc); wrapped {
		doc = payload
	}
	named := false
	end := eachMember(doc, skipSpace(doc, 0), func(name, value []byte) bool {
		switch string(name) {
		case FlatPrefix + "op", FlatPrefix + "deleted":
			named = named || value[0] == '"'
		}
		return true
	})
	if end == invalid || !signed && !named {
		return false
	}
	_, missing := openEnvelope(r.Value)
	return missing == dedup.MissingAbsent
}
