package messageid

import (
	"bytes"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/dedup"
)

// Changes of databases in other forms than Debezium's envelope, as Source.From names them. Each is
// known by what identifies the change. What is no change passes exempt, for such records are for
// everybody who reads a partition: marks of time, statements, the progress of a load.
const (
	FromMaxwell     = "maxwell"
	FromCanal       = "canal_json"
	FromTiCDC       = "ticdc"
	FromCockroachDB = "cockroachdb"
	FromMongoDB     = "mongodb"
	FromDMS         = "dms"
)

// IsChange reports whether a place is a change of a database by one of its forms.
func IsChange(from string) bool { return from == FromDebezium || feeds[from].fields != nil }

// hasFormats reports whether changes of a form may be other than JSON.
func hasFormats(from string) bool { return from == FromDebezium || from == FromCockroachDB }

// feed is what the changes of one producer look like.
type feed struct {
	fields feedFields
	// judge says whether a record is a change that can be told from others; it may clear what does
	// not count.
	judge func(c *feedChange) dedup.MissingReason
}

// feedFields are those that are read of a document: a name, or a member of a name.
type feedFields [][2]string

// mostFeedFields is the size of a feedChange.
const mostFeedFields = 20

// feedChange has the texts of the fields, in their order; nil: it is not there, or null.
type feedChange struct {
	fields  feedFields
	values  [mostFeedFields][]byte
	null    [mostFeedFields]bool // it is there, and null
	members int                  // of the document
	schema  bool                 // the document is made by one, which leaves out what is null
}

func (c *feedChange) of(parent, name string) *[]byte {
	for i, field := range c.fields {
		if field == [2]string{parent, name} {
			return &c.values[i]
		}
	}
	return new([]byte)
}

func (c *feedChange) has(parent, name string) bool { return *c.of(parent, name) != nil }

// wrote reports whether the record has the field, be it null.
func (c *feedChange) wrote(name string) bool {
	for i, field := range c.fields {
		if field == [2]string{"", name} {
			return c.null[i] || c.values[i] != nil
		}
	}
	return false
}

func (c *feedChange) is(parent, name string, words ...string) bool {
	value := *c.of(parent, name)
	for _, word := range words {
		if string(value) == word || string(unquotedText(value)) == word {
			return true
		}
	}
	return false
}

// read takes the fields out of a document. It is false for what is no whole object.
func (c *feedChange) read(doc []byte) bool {
	end := eachMember(doc, skipSpace(doc, 0), func(name, value []byte) bool {
		c.members++
		nested := false
		for i, field := range c.fields {
			switch {
			case field[0] == "" && field[1] == string(name):
				c.values[i] = notNull(value)
				c.null[i] = c.values[i] == nil
			case field[0] != "" && field[0] == string(name):
				nested, c.values[i] = true, nil
			}
		}
		if nested && value[0] == '{' {
			eachMember(value, 0, func(inner, value []byte) bool {
				for i, field := range c.fields {
					if field[0] == string(name) && field[1] == string(inner) {
						c.values[i] = notNull(value)
					}
				}
				return true
			})
		}
		return true
	})
	return end != invalid && skipSpace(doc, end) == len(doc)
}

func notNull(value []byte) []byte {
	if string(value) == "null" {
		return nil
	}
	return value
}

func newFeed(s Source, all *gathered) (finder, string, error) {
	docs, err := newDocuments(s.Format, false, s.Registry, &all.news)
	if err != nil {
		return nil, "", err
	}
	name := s.From
	if docs != nil {
		all.schemas = append(all.schemas, &docs.schemas)
		name += "_" + s.Format
	}
	if s.From == FromMongoDB {
		return fromMongoDB, name, nil
	}
	f, keys := feeds[s.From], framedKeys(s)
	return func(r *kgo.Record) (dedup.ID, dedup.MissingReason) {
		return f.find(r, s.From, docs, keys)
	}, name, nil
}

func (f feed) find(
	r *kgo.Record, name string, docs *documents, keys *Frames,
) (dedup.ID, dedup.MissingReason) {
	if _, missing := shared(r.Value); missing != dedup.NotMissing {
		return "", missing
	}
	doc, _ := unframed(r.Value)
	if docs != nil {
		with := encoders.Get().(*encoder)
		defer encoders.Put(with)
		var missing dedup.MissingReason
		if doc, missing = with.read(docs, r); missing != dedup.NotMissing {
			return "", missing
		}
	}
	c := feedChange{fields: f.fields, schema: docs != nil}
	doc = insidePayload(doc)
	if !c.read(doc) {
		return "", notAnEnvelope(doc, skipSpace(doc, 0))
	}
	if missing := f.judge(&c); missing != dedup.NotMissing {
		return "", missing
	}
	room := changeRooms.Get().(*[]byte)
	defer changeRooms.Put(room)
	said := appendPart((*room)[:0], []byte(name))
	said = appendPart(said, keyOf(r, keys))
	for i := range c.fields {
		said = appendPart(said, c.values[i])
	}
	if c.has("__crdb__", "updated") || c.has("__crdb__", "mvcc_timestamp") { // beside the columns
		said = append(said, doc...)
	}
	return idOfChange(said, room), dedup.NotMissing
}

// fromMongoDB takes the resume token of a change stream's event, which the connector also writes
// into the key. Documents that it copies at its start have none.
func fromMongoDB(r *kgo.Record) (dedup.ID, dedup.MissingReason) {
	missing := dedup.MissingAbsent
	for _, part := range [][]byte{r.Value, r.Key} {
		token, copying, ok := resumeToken(part)
		switch {
		case copying:
			return "", dedup.MissingExempt
		case len(token) > 0:
			return dedup.ID(token), dedup.NotMissing
		case !ok && len(part) > 0:
			missing = dedup.MissingUnparsable
		}
	}
	if r.Value == nil && r.Key == nil {
		missing = dedup.MissingNull
	}
	return "", missing
}

// resumeToken reads an event, which may lie as text in a document of schema and payload, and whose
// _id may be text, too.
func resumeToken(part []byte) (token []byte, copying, ok bool) {
	if len(part) == 0 {
		return nil, false, false
	}
	doc, _ := unframed(part)
	doc = document(insidePayload(doc))
	event := feedChange{fields: feedFields{{"", "_id"}}}
	if !event.read(doc) {
		return nil, false, false
	}
	id := feedChange{fields: feedFields{{"", "_data"}, {"", "copyingData"}}}
	if !id.read(document(event.values[0])) {
		return nil, false, true // an ID of another kind
	}
	return document(id.values[0]), id.is("", "copyingData", "true"), true
}

// insidePayload is the payload that stands alone or beside a schema, and anything else as it is.
func insidePayload(doc []byte) []byte {
	if payload, _ := payloadIn(doc); payload != nil {
		return payload
	}
	return doc
}

// document is what a JSON string holds, and anything else as it is.
func document(value []byte) []byte { return unquoted(bytes.TrimSpace(value)) }
