package messageid

import "slices"

// sourceFields are those of the envelope's source that are read. The first ones say of which table
// a change is.
var sourceFields = [sourceCount]string{"name", "connector", "db", "schema", "table", "lsn", "gtid",
	"server_id", "file", "pos", "row", "commit_lsn", "change_lsn", "event_serial_no", "scn",
	"rs_id", "ssn", "redo_thread", "lcr_position"}

const (
	sourceName      = 0
	sourceConnector = 1
	tableFields     = 5
	sourceCount     = 19
)

// position is where a change stands in the log of a database, by fields of the source. They are the
// same whenever a connector reads the change.
type position struct {
	fields []int
	needed int // without this one the whole source counts
}

// positions are those of the connectors that give each row one. A snapshot has one for all its
// rows: the key and the row tell them apart.
var positions = map[string]position{
	"postgresql": positionOf("lsn"),
	// gtid and server tell binary logs apart that began again with the same names
	"mysql":     positionOf("file", "pos", "row", "gtid", "server_id"),
	"mariadb":   positionOf("file", "pos", "row", "gtid", "server_id"),
	"sqlserver": positionOf("commit_lsn", "change_lsn", "event_serial_no"),
	"oracle":    positionOf("scn", "rs_id", "ssn", "redo_thread", "lcr_position"),
}

func positionOf(needed string, others ...string) (p position) {
	for _, name := range append([]string{needed}, others...) {
		p.fields = append(p.fields, slices.Index(sourceFields[:], name))
	}
	p.needed = p.fields[0]
	return p
}

// appendSource appends which table and which place in its log a source names. It is false for what
// cannot be read.
func (c change) appendSource(to []byte, e *envelope, with *canonical) ([]byte, bool) {
	at, known := positions[string(unquotedText(e.of[sourceConnector]))]
	if !known || e.of[at.needed] == nil {
		return with.document(append(to, 'a'), e.source, c.own())
	}
	if c.anySource {
		e.of[sourceName] = nil
	}
	to = append(to, 'p')
	for _, field := range e.of[:tableFields] {
		to = appendPart(to, field)
	}
	for _, i := range at.fields {
		to = appendPart(to, e.of[i])
	}
	return to, true
}

// readSource takes the fields of a source. It returns the position behind it, or invalid.
func (e *envelope) readSource(doc []byte, start int) int {
	clear(e.of[:])
	end := eachMember(doc, start, func(name, value []byte) bool {
		if i := slices.Index(sourceFields[:], string(name)); i >= 0 {
			if e.of[i] = value; string(value) == "null" {
				e.of[i] = nil
			}
		}
		return true
	})
	if end != invalid {
		e.source = doc[start:end]
	}
	return end
}

func unquotedText(value []byte) []byte {
	if len(value) < len(`""`) {
		return nil
	}
	return value[1 : len(value)-1]
}

// sourceOwn is what a connector says of itself in a source of which no position is known. Its times
// count: MongoDB tells by one of them where a change stands.
var sourceOwn = []string{"version", "sequence", "snapshot"}

var (
	ownOfSource    = newIgnored(sourceOwn...)
	ownOfAnySource = newIgnored(append(slices.Clone(sourceOwn), "name")...)
)

func (c change) own() *ignored {
	if c.anySource {
		return ownOfAnySource
	}
	return ownOfSource
}

func newIgnored(names ...string) *ignored {
	g := new(ignored)
	for _, name := range names {
		g.add(jsonPath{{Name: name, Index: -1}})
	}
	return g
}
