package messageid

import "bytes"

// IsTombstone reports whether a value says that its key is gone: there is none, or Kafka Connect's
// JsonConverter has written down that there is none, as null or as the payload beside a schema.
func IsTombstone(value []byte) bool {
	if value == nil || string(value) == "null" {
		return true
	}
	if len(value) == 0 || value[0] != '{' || !bytes.HasSuffix(value, []byte("null}")) {
		return false
	}
	payload, wrapped := payloadOf(value)
	return wrapped && string(payload) == "null"
}

// leavesNothingOf reports whether all that a JSON value says is ignored, as of a heartbeat that is
// but a time. A schema beside a payload says nothing of its own. In other formats a field that is
// left out may say that it has its default value.
func (c *content) leavesNothingOf(value []byte) bool {
	if c.ignore == nil || c.documents != nil {
		return false
	}
	without := c.ignore
	doc, _ := unframed(value)
	if payload, wrapped := payloadOf(doc); wrapped && without.member([]byte("schema")) == nil {
		without, doc = without.member([]byte("payload")), payload
	}
	return without.nothingIn(doc)
}

func (g *ignored) nothingIn(doc []byte) bool {
	if g.whole() {
		return true
	}
	nothing := true
	end := eachMember(doc, skipSpace(doc, 0), func(name, value []byte) bool {
		inner := g.member(name)
		nothing = inner.whole() || inner != nil && value[0] == '{' && inner.nothingIn(value)
		return nothing
	})
	return nothing && end != invalid
}
