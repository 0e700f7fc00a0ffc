package cqltest

import (
	"encoding/binary"
	"regexp"
	"strconv"
	"strings"
)

// statement is one of those that kdedup and its driver send.
type statement struct {
	kind string // select, insert, update, delete, batch, create, use
	// with its keyspace; of create: what and its name, as in "type ks.claim_owner"
	table       string
	columns     []string
	values      []value     // of insert and update
	where       []condition // of select, update and delete
	holds       []condition // of an update that has conditions
	conditional bool
	ttl         value // in seconds, of an insert or an update
	limit       value // of a select
	batch       []statement
	markers     []string // the column of each ?, in order
}

// ttlOf begins the name of a column that tells how long another one lives.
const ttlOf = "ttl("

// value is a literal, or the marker with a number.
type value struct {
	marker  int // -1: a literal
	literal []byte
}

type condition struct {
	column string
	in     bool
	behind bool // greater
	value  value
}

var tokenPattern = regexp.MustCompile(`'(?:[^']|'')*'|"[^"]*"|[\w.*]+|\S`)

type parser struct {
	tokens  []string
	markers []string
}

// quotedName is kept here without its quotes, as it stands in the tables of the schema.
var quotedName = regexp.MustCompile(`"(\w+)"`)

func parse(text string) (statement, error) {
	p := &parser{tokens: tokenPattern.FindAllString(quotedName.ReplaceAllString(text, "$1"), -1)}
	s := p.statement()
	s.markers = p.markers
	if s.kind == "" {
		return s, invalid("no viable alternative at input %.80q", text)
	}
	return s, nil
}

func (p *parser) peek() string {
	if len(p.tokens) == 0 {
		return ""
	}
	return strings.ToUpper(p.tokens[0])
}

func (p *parser) next() string {
	if len(p.tokens) == 0 {
		return ""
	}
	token := p.tokens[0]
	p.tokens = p.tokens[1:]
	return token
}

// skip drops tokens up to the word and the word.
func (p *parser) skip(word string) {
	for token := p.next(); token != "" && !strings.EqualFold(token, word); token = p.next() {
	}
}

// accept drops the words if they come next.
func (p *parser) accept(words ...string) bool {
	if len(p.tokens) < len(words) || !strings.EqualFold(strings.Join(p.tokens[:len(words)], " "),
		strings.Join(words, " ")) {
		return false
	}
	p.tokens = p.tokens[len(words):]
	return true
}

func (p *parser) statement() (s statement) {
	s.ttl, s.limit = none, none
	switch p.peek() {
	case "SELECT":
		s.kind = "select"
		p.next()
		s.columns = p.list("FROM")
		s.table = p.next()
		s.where = p.conditions("WHERE")
		if p.accept("LIMIT") {
			s.limit = p.value("[limit]")
		}
	case "INSERT":
		s = p.insert()
	case "UPDATE":
		s = p.update()
	case "DELETE":
		s.kind = "delete"
		p.skip("FROM")
		s.table = p.next()
		s.where = p.conditions("WHERE")
		s.conditional = p.accept("IF", "EXISTS")
	case "BEGIN":
		s.kind = "batch"
		p.skip("BATCH")
		for p.peek() != "APPLY" && p.peek() != "" {
			one := p.statement()
			if one.kind == "" {
				return statement{}
			}
			s.batch, s.table, s.conditional = append(s.batch, one), one.table, s.conditional ||
				one.conditional
			p.accept(";")
		}
	case "CREATE":
		s.kind = "create"
		p.next()
		what := strings.ToLower(p.next())
		p.accept("IF", "NOT", "EXISTS")
		s.table = what + " " + p.next()
	case "USE":
		s.kind = "use"
		p.next()
		s.table = strings.Trim(p.next(), `"`)
	}
	return s
}

func (p *parser) insert() statement {
	s := statement{kind: "insert", ttl: none, limit: none}
	p.skip("INTO")
	s.table = p.next()
	p.skip("(")
	s.columns = p.list(")")
	p.skip("(")
	for i := range s.columns {
		s.values = append(s.values, p.value(s.columns[i]))
		p.next() // a comma or the end
	}
	s.conditional = p.accept("IF", "NOT", "EXISTS")
	if p.accept("USING", "TTL") {
		s.ttl = p.value("[ttl]")
	}
	return s
}

// update sets one column.
func (p *parser) update() statement {
	s := statement{kind: "update", ttl: none, limit: none}
	p.skip("UPDATE")
	s.table = p.next()
	if p.accept("USING", "TTL") {
		s.ttl = p.value("[ttl]")
	}
	p.skip("SET")
	s.columns = []string{p.next()}
	p.skip("=")
	s.values = []value{p.value(s.columns[0])}
	s.where = p.conditions("WHERE")
	s.holds = p.conditions("IF")
	s.conditional = len(s.holds) > 0
	return s
}

// list reads names up to the end.
func (p *parser) list(end string) (names []string) {
	for token := p.next(); token != "" && !strings.EqualFold(token, end); token = p.next() {
		if token == "TTL" && p.accept("(") {
			token = ttlOf + p.next() + ")"
			p.next()
		}
		if token != "," {
			names = append(names, token)
		}
	}
	return names
}

// conditions follow on a word, if that comes next.
func (p *parser) conditions(word string) (conditions []condition) {
	if !p.accept(word) {
		return nil
	}
	for {
		c := condition{column: p.next()}
		operator := p.next()
		c.in, c.behind = strings.EqualFold(operator, "IN"), operator == ">"
		c.value = p.value(c.column)
		conditions = append(conditions, c)
		if !p.accept("AND") {
			return conditions
		}
	}
}

func (p *parser) value(column string) value {
	token := p.next()
	if token == "?" {
		p.markers = append(p.markers, column)
		return value{marker: len(p.markers) - 1}
	}
	return value{marker: -1, literal: []byte(strings.ReplaceAll(strings.Trim(token, "'"), "''",
		"'"))}
}

// number is the value of an int; 0 if there is none.
func (v value) number(bound [][]byte) int {
	if v.marker < 0 {
		n, _ := strconv.Atoi(string(v.literal))
		return n
	}
	if len(bound[v.marker]) != 4 {
		return 0
	}
	return int(binary.BigEndian.Uint32(bound[v.marker]))
}

// none is the value of what a statement does not have.
var none = value{marker: -1}

// bind puts the value of its marker in the place of a value.
func (v value) bind(bound [][]byte) []byte {
	if v.marker < 0 {
		return v.literal
	}
	return bound[v.marker]
}
