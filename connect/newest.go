package connect

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/config"
	"github.com/kdedup/kdedup/connect/logreader"
	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/dedup/messageid"
)

// newestLooked is how many of an input's newest records are looked at for message IDs.
const newestLooked = 100

// Newest is what the newest records of an input show of their message IDs.
type Newest struct {
	entry          Entry
	looked, found  int
	exempt         int                 // no ID is looked for in them, for only_if
	tombstones     int                 // nor in these, for on_tombstone
	whole          int                 // of those found: fingerprint names fields they lack
	documents      messageid.Documents // of those found
	inHeader       int                 // those whose schema a header names
	flat           int                 // rows that Debezium has taken out of their changes
	codecs         map[uint8]bool      // of the batches, by Kafka's numbers
	headers, field map[string]bool     // names seen, of headers and of JSON fields at the top
	reason         string              // why the last record without an ID has none
}

// LookAtNewest reads the newest records of an entry's input.
func LookAtNewest(
	ctx context.Context, client *kgo.Client, connection []kgo.Opt, e Entry,
) (Newest, error) {
	n := Newest{entry: e, codecs: make(map[uint8]bool),
		headers: make(map[string]bool), field: make(map[string]bool)}
	log, err := logreader.Describe(ctx, client, e.Input, logreader.Bounds{MaxRecords: newestLooked})
	if err == nil {
		err = logreader.Read(ctx, connection, log, func(records []*kgo.Record) error {
			for _, r := range records {
				_, missing, err := dedup.ExtractNow(ctx, e.Extractor, r)
				if err != nil {
					return err
				}
				n.look(r, missing)
			}
			return nil
		})
	}
	if err != nil {
		return Newest{}, fmt.Errorf("look at the newest records of %s: %w", e.Input, err)
	}
	return n, nil
}

// LookAtNewest looks at those of an entry, which gets its extractor.
func (s *Servers) LookAtNewest(ctx context.Context, e *Entry) (Newest, error) {
	if err := s.extract(e); err != nil {
		return Newest{}, err
	}
	clusters, err := s.Clusters(ctx)
	if err != nil {
		return Newest{}, err
	}
	connection, err := s.InputOptions(ctx, "newest")
	if err != nil {
		return Newest{}, err
	}
	return LookAtNewest(ctx, clusters.Input, connection, *e)
}

func (n *Newest) look(r *kgo.Record, missing dedup.MissingReason) {
	n.looked++
	if messageid.IsFlat(r) {
		n.flat++
	}
	if messageid.SchemaHeader(r, n.entry.MessageID.Part == config.PartKey) != "" {
		n.inHeader++
	}
	n.codecs[r.Attrs.CompressionType()] = true
	switch missing {
	case dedup.NotMissing:
		n.found++
		if !n.entry.Extractor.Partial(r) {
			n.whole++
		}
		n.documents.Count(r.Value)
		return
	case dedup.MissingExempt:
		n.exempt++
		return
	case dedup.MissingTombstone:
		n.tombstones++
		return
	}
	n.reason = missing.String()
	for _, h := range r.Headers {
		n.headers[h.Key] = true
	}
	var fields map[string]json.RawMessage
	if json.Unmarshal(r.Value, &fields) == nil {
		for name := range fields {
			n.field[name] = true
		}
	}
}

// None says that no record has an ID: the setting is wrong, or the records are.
func (n Newest) None() bool { return n.looked > n.exempt+n.tombstones && n.found == 0 }

// Error is for None.
func (n Newest) Error() string {
	text := fmt.Sprintf("%s.message_id: %s found in 0 of the newest %d records of %s (%s)",
		n.entry.Path, n.entry.Extractor, n.looked, n.entry.Input, n.reason)
	for _, seen := range []struct {
		what  string
		names map[string]bool
	}{{"headers", n.headers}, {"JSON fields", n.field}} {
		if len(seen.names) > 0 {
			text += fmt.Sprintf("; %s seen: %s", seen.what,
				someOf(slices.Sorted(maps.Keys(seen.names)), 10))
		}
	}
	return text + n.Remark()
}

// someOf keeps a message short.
func someOf(names []string, most int) string {
	if more := len(names) - most; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), more)
	}
	return strings.Join(names, ", ")
}

// String is for setup and validate.
func (n Newest) String() string {
	switch {
	case n.looked == 0:
		return fmt.Sprintf("message_id of %s: there is no record to look at yet", n.entry.Input)
	case n.None():
		return n.Error()
	}
	return fmt.Sprintf("message_id of %s: found in %d of the newest %d records%s", n.entry.Input,
		n.found, n.looked, n.Remark())
}

// codecNames are in the order of their numbers.
var codecNames = []config.Compression{config.CompressionNone, config.CompressionGzip,
	config.CompressionSnappy, config.CompressionLZ4, config.CompressionZstd}

// Compression tells what the clean topic's readers will have to unpack, as far as it follows from
// the input.
func (n Newest) Compression() string {
	if n.entry.Topic.Compression != config.CompressionInput || len(n.codecs) == 0 {
		return ""
	}
	var seen []string
	for _, codec := range slices.Sorted(maps.Keys(n.codecs)) {
		if int(codec) < len(codecNames) {
			seen = append(seen, string(codecNames[codec]))
		}
	}
	return fmt.Sprintf("compression of %s: that of %s, whose newest records have %s",
		n.entry.Output, n.entry.Input, strings.Join(seen, " and "))
}

// Remark is what somebody may not know of the records, or empty.
func (n Newest) Remark() (text string) {
	if n.exempt > 0 {
		why := "only_if does not hold for"
		if n.entry.OnlyIf.From == "" {
			why = "no change of a row are"
		}
		text = fmt.Sprintf("; %s %d, which pass as they are", why, n.exempt)
	}
	if n.tombstones > 0 {
		text += fmt.Sprintf("; %d are tombstones, and on_tombstone is %s", n.tombstones,
			n.entry.OnTombstone)
	}
	fields := len(n.entry.Fingerprint.Ignore) + len(n.entry.Fingerprint.Only)
	if fields > 0 && n.whole > 0 {
		text += fmt.Sprintf("; the values of %d count as a whole, for fingerprint does not find "+
			"its fields in them", n.whole)
	}
	if cut := n.documents.CutOff(); cut > 0 {
		text += fmt.Sprintf("; the values of %d begin as JSON and are not whole: each takes its ID, "+
			"and a whole copy is in conflict with it; with documents: whole they have no ID", cut)
	}
	if n.inHeader > 0 {
		text += fmt.Sprintf("; %d have the schema in a header", n.inHeader)
	}
	if n.flat > 0 && (n.entry.MessageID.From == config.FromValueHash ||
		n.entry.MessageID.From == config.FromDebezium) {
		text += fmt.Sprintf("; %d are rows without their change, as ExtractNewRecordState makes "+
			"them: equal ones are states of a row, not copies, and nothing tells which change they "+
			"are of. docs/recipes/debezium.md says what to add to the transform", n.flat)
	}
	if n.entry.Extractor.SkippedSchemaID() {
		text += "; documents stand behind the five bytes of a schema registry, which are skipped"
	}
	return text
}

// NeedsIDs reports whether the pipeline keeps records without an ID from the clean topic.
func NeedsIDs(t config.Topic) bool {
	return t.Mode == config.ModeEnforce &&
		(t.OnMissingID == config.ActionDeadLetter || t.OnMissingID == config.ActionDrop)
}
