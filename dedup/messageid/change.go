package messageid

import (
	"crypto/sha256"
	"encoding/binary"
	"sync"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/dedup"
)

// FromDebezium is a change in Debezium's envelope, known by what identifies it.
const FromDebezium = "debezium"

// change identifies a record by where its change stands in the log of the database, by its key, and
// by what was done to the row. What a connector says of itself does not count: it is other when the
// connector reads the change again.
type change struct {
	documents *documents // nil: the value is JSON itself
	keys      *Frames
	anySource bool
}

func newChange(s Source, all *gathered) (finder, string, error) {
	docs, err := newDocuments(s.Format, false, s.Registry, &all.news)
	if err != nil {
		return nil, "", err
	}
	name := FromDebezium
	if docs != nil {
		all.schemas = append(all.schemas, &docs.schemas)
		name += "_" + s.Format
	}
	if s.AnySource {
		name += "_any_source"
	}
	return change{docs, framedKeys(s), s.AnySource}.find, name, nil
}

func (c change) find(r *kgo.Record) (dedup.ID, dedup.MissingReason) {
	if _, missing := shared(r.Value); missing != dedup.NotMissing {
		return "", missing
	}
	with := encoders.Get().(*encoder)
	defer encoders.Put(with)
	var doc []byte
	if c.documents == nil {
		doc, _ = unframed(r.Value)
	} else {
		var missing dedup.MissingReason
		if doc, missing = with.read(c.documents, r); missing != dedup.NotMissing {
			return "", missing
		}
	}
	e, missing := openEnvelope(doc)
	if missing != dedup.NotMissing {
		return "", missing
	}
	if string(e.of[sourceConnector]) == `"TiCDC"` && string(e.op) == `"m"` {
		return "", dedup.MissingExempt // a mark of time, which every partition has
	}
	room := changeRooms.Get().(*[]byte)
	defer changeRooms.Put(room)
	said := appendPart((*room)[:0], keyOf(r, c.keys))
	said, ok := c.appendSource(said, &e, with.canonical)
	if !ok {
		return "", dedup.MissingUnparsable
	}
	after := e.after
	if e.update != nil { // MongoDB: then after is what a look-up found later, and other each time
		after = nil
	}
	for _, part := range [][]byte{e.op, e.before, after, e.update, e.message} {
		said = appendPart(said, part)
	}
	return idOfChange(said, room), dedup.NotMissing
}

// idOfChange is a hash of what identifies a change. The room keeps the memory for the next one.
func idOfChange(said []byte, room *[]byte) dedup.ID {
	if *room = said; cap(said) > mostKept {
		*room = nil
	}
	sum := sha256.Sum256(said)
	return dedup.ID(sum[:])
}

var changeRooms = sync.Pool{New: func() any { return new([]byte) }}

// envelope has the texts of what counts; nil: it is not there, or null.
type envelope struct {
	op, before, after, update, message []byte

	source []byte
	of     [sourceCount][]byte // its fields
}

// openEnvelope finds them in a document, or in the payload that stands beside a schema.
func openEnvelope(doc []byte) (e envelope, missing dedup.MissingReason) {
	var payload []byte
	start := skipSpace(doc, 0)
	end := readMembers(doc, start, func(name []byte, i int) (end int) {
		if string(name) == "source" && at(doc, i) == '{' {
			return e.readSource(doc, i)
		}
		if _, end = scanValue(doc, i, nil, maxJSONDepth-1); end == invalid {
			return end
		}
		value := doc[i:end]
		switch string(name) {
		case "op":
			e.op = value
		case "source":
			e.source = value
		case "before":
			e.before = value
		case "after":
			e.after = value
		case "updateDescription":
			e.update = value
		case "message":
			e.message = value
		case "payload":
			payload = value
		}
		return end
	})
	switch {
	case end == invalid || skipSpace(doc, end) != len(doc):
		return e, notAnEnvelope(doc, start)
	case e.op == nil && e.source == nil && len(payload) > 0 && payload[0] == '{':
		return openEnvelope(payload)
	case len(e.source) == 0 || e.source[0] != '{' || len(e.op) == 0 || e.op[0] != '"':
		return e, dedup.MissingAbsent
	}
	for _, part := range []*[]byte{&e.before, &e.after, &e.update, &e.message} {
		if string(*part) == "null" {
			*part = nil
		}
	}
	return e, dedup.NotMissing
}

// notAnEnvelope is why a document that is no object has no ID.
func notAnEnvelope(doc []byte, start int) dedup.MissingReason {
	_, end := scanValue(doc, start, nil, maxJSONDepth)
	switch {
	case end == invalid || skipSpace(doc, end) != len(doc):
		return dedup.MissingUnparsable
	case string(doc[start:end]) == "null":
		return dedup.MissingNull
	}
	return dedup.MissingAbsent
}

// readMembers reads an object, and returns the position behind it, or invalid. What is called for
// each member returns the position behind its value, or invalid.
func readMembers(doc []byte, i int, value func(name []byte, i int) (end int)) int {
	if at(doc, i) != '{' {
		return invalid
	}
	if i = skipSpace(doc, i+1); at(doc, i) == '}' {
		return i + 1
	}
	for more := true; more; {
		end := skipString(doc, i)
		if end == invalid {
			return invalid
		}
		name := unescaped(doc[i+1 : end-1])
		if i = skipSpace(doc, end); at(doc, i) != ':' {
			return invalid
		}
		if i = value(name, skipSpace(doc, i+1)); i == invalid {
			return invalid
		}
		i, more = skipSeparator(doc, i, '}')
	}
	return i
}

// eachMember reads an object for as long as somebody wants more. It returns the position behind it,
// or invalid.
func eachMember(doc []byte, i int, found func(name, value []byte) (more bool)) int {
	return readMembers(doc, i, func(name []byte, i int) int {
		_, end := scanValue(doc, i, nil, maxJSONDepth-1)
		if end == invalid || !found(name, doc[i:end]) {
			return invalid
		}
		return end
	})
}

// framedKeys reads which schema a key names, as the entry's registry has them.
func framedKeys(s Source) *Frames { return NewFrames(framingOf(s.Registry), PartKey) }

// keyOf is the key by what it says: with a schema beside it, or behind the name of one, it is the
// same key.
func keyOf(r *kgo.Record, keys *Frames) []byte {
	if len(r.Key) == 0 {
		return r.Key
	}
	rest, _ := unframed(r.Key)
	if _, body, framed := keys.Of(r); framed {
		rest = withoutMark(body)
	}
	if payload, wrapped := payloadOf(rest); wrapped {
		return payload
	}
	return rest
}

// payloadOf is the payload of what Kafka Connect's JsonConverter writes with schemas.enable, its
// default: an object of schema and payload, and of nothing else.
func payloadOf(doc []byte) (payload []byte, wrapped bool) {
	payload, schema := payloadIn(doc)
	return payload, schema && payload != nil
}

// payloadIn is the payload of an object that has nothing else, but maybe a schema. It is nil for
// anything else.
func payloadIn(doc []byte) (payload []byte, schema bool) {
	others := false
	end := eachMember(doc, skipSpace(doc, 0), func(name, value []byte) bool {
		switch string(name) {
		case "schema":
			schema = true
		case "payload":
			payload = value
		default:
			others = true
		}
		return !others
	})
	if others || end == invalid || skipSpace(doc, end) != len(doc) {
		return nil, false
	}
	return payload, schema
}

// appendPart tells null from what is empty, and where each part ends.
func appendPart(to, part []byte) []byte {
	if part == nil {
		return append(to, 0)
	}
	to = binary.AppendUvarint(append(to, 1), uint64(len(part)))
	return append(to, part...)
}
