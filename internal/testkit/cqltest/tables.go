package cqltest

import (
	"encoding/binary"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// row is a row's cells in wire form, by the names of their columns; what is missing is null.
type row map[string][]byte

type storedRow struct {
	cells   row
	expires time.Time // zero: never
}

// table is one of kdedup's.
type table struct {
	columns []string // those of the key first
	key     int      // how many they are
	rows    map[string]storedRow
}

func newTable(name string) *table {
	if strings.HasSuffix(name, ".dedup_scopes") {
		return &table{columns: []string{"consumer_group", "topic", "buckets", "extractor"}, key: 2,
			rows: make(map[string]storedRow)}
	}
	return &table{columns: []string{"consumer_group", "topic", "bucket", "message_id", "owner"},
		key: 4, rows: make(map[string]storedRow)}
}

// at is a row's place; places are ordered as the rows of a partition are.
func (t *table) at(r row) string {
	var place strings.Builder
	for i, column := range t.columns[:t.key] {
		if i < 3 {
			place.WriteString(strconv.Itoa(len(r[column])) + ":")
		}
		place.Write(r[column])
	}
	return place.String()
}

// live returns the row unless it has expired.
func (t *table) live(place string, expiredToo bool) (row, bool) {
	stored, found := t.rows[place]
	if !found || !expiredToo && !stored.expires.IsZero() && !time.Now().Before(stored.expires) {
		return nil, false
	}
	return stored.cells, true
}

// answer is a result of rows, or nothing if there are no columns.
type answer struct {
	table   string
	columns []string
	rows    []row
}

func (s *Server) execute(st statement, bound [][]byte) (answer, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch st.kind {
	case "create":
		s.create(st.table)
		return answer{}, nil
	case "select":
		return s.selected(st, bound), nil
	}
	t, found := s.tables[st.table]
	if !found {
		return answer{}, invalid("unconfigured table %s", st.table)
	}
	statements := st.batch
	if st.kind != "batch" {
		statements = []statement{st}
	}
	if st.conditional {
		return s.conditional(t, st.table, statements, bound), nil
	}
	for _, one := range statements {
		t.write(one, bound)
	}
	return answer{}, nil
}

func (s *Server) create(what string) {
	s.created[what] = true
	if name, isTable := strings.CutPrefix(what, "table "); isTable && s.tables[name] == nil {
		s.tables[name] = newTable(name)
	}
}

// write inserts or updates, or deletes a row or a whole partition.
func (t *table) write(st statement, bound [][]byte) {
	if st.kind != "delete" {
		r := st.row(bound)
		stored := storedRow{cells: r}
		if seconds := st.ttl.number(bound); seconds > 0 {
			stored.expires = time.Now().Add(time.Duration(seconds) * time.Second)
		}
		t.rows[t.at(r)] = stored
		return
	}
	for place, stored := range t.rows {
		if matches(stored.cells, st.where, bound) {
			delete(t.rows, place)
		}
	}
}

// row is what a statement writes, or the key that a delete names.
func (st statement) row(bound [][]byte) row {
	r := make(row)
	for i, column := range st.columns {
		r[column] = st.values[i].bind(bound)
	}
	for _, c := range st.where {
		r[c.column] = c.value.bind(bound)
	}
	return r
}

// conditional applies all statements or none: the conditions are those before the first of them.
func (s *Server) conditional(t *table, name string, statements []statement, bound [][]byte) answer {
	applied := true
	places := make([]string, len(statements))
	before := make([]row, len(statements))
	for i, st := range statements {
		places[i] = t.at(st.row(bound))
		existing, found := t.live(places[i], s.dialect.ExpiredRowsStand)
		before[i] = existing
		applied = applied && found == (st.kind != "insert") && matches(existing, st.holds, bound)
	}
	if applied {
		for _, st := range statements {
			t.write(st, bound)
		}
	}
	if s.dialect.ListsEveryStatement {
		return listAll(t, name, applied, before)
	}
	return listExisting(t, name, applied, places, before)
}

// listExisting is Cassandra's answer: nothing but [applied], or each existing row once, in
// clustering order.
func listExisting(t *table, name string, applied bool, places []string, before []row) answer {
	alone := answer{table: name, columns: []string{"[applied]"},
		rows: []row{{"[applied]": boolean(applied)}}}
	if applied {
		return alone
	}
	existing := make(map[string]row)
	for i, place := range places {
		if before[i] != nil {
			existing[place] = before[i]
		}
	}
	if len(existing) == 0 {
		return alone
	}
	slices.Sort(places)
	a := answer{table: name, columns: append([]string{"[applied]"}, t.columns...)}
	for _, place := range slices.Compact(places) {
		if existing[place] != nil {
			a.rows = append(a.rows, withApplied(existing[place], applied))
		}
	}
	return a
}

func listAll(t *table, name string, applied bool, before []row) answer {
	a := answer{table: name, columns: append([]string{"[applied]"}, t.columns...)}
	for _, r := range before {
		a.rows = append(a.rows, withApplied(r, applied))
	}
	return a
}

func withApplied(r row, applied bool) row {
	all := row{"[applied]": boolean(applied)}
	for column, cell := range r {
		all[column] = cell
	}
	return all
}

func (s *Server) selected(st statement, bound [][]byte) answer {
	a := answer{table: st.table, columns: st.columns}
	if t, ours := s.tables[st.table]; ours {
		a.rows = t.named(st.where, bound)
		if limit := st.limit.number(bound); limit > 0 && len(a.rows) > limit {
			a.rows = a.rows[:limit]
		}
		return a
	}
	columns, rows := s.systemRows(st.table)
	if len(st.columns) == 1 && st.columns[0] == "*" {
		a.columns = columns
	}
	for _, r := range rows {
		if matches(r, st.where, bound) {
			a.rows = append(a.rows, r)
		}
	}
	return a
}

// named are the rows whose keys the conditions name: each of the key's columns has one, the last
// may have a list.
func (t *table) named(where []condition, bound [][]byte) (rows []row) {
	key, last := row{}, []string{""}
	if at := slices.IndexFunc(where, func(c condition) bool { return c.behind }); at >= 0 {
		return t.behind(where[:at], where[at], bound)
	}
	for _, c := range where {
		key[c.column] = c.value.bind(bound)
		if c.in {
			last = elements(key[c.column])
			delete(key, c.column)
		}
	}
	for _, id := range last {
		if r, alive := t.told(t.at(key) + id); alive {
			rows = append(rows, r)
		}
	}
	return rows
}

// behind are the rows of a partition that come after a value, in their order.
func (t *table) behind(partition []condition, after condition, bound [][]byte) (rows []row) {
	for _, place := range slices.Sorted(maps.Keys(t.rows)) {
		r, alive := t.told(place)
		if alive && matches(r, partition, bound) &&
			string(r[after.column]) > string(after.value.bind(bound)) {
			rows = append(rows, r)
		}
	}
	return rows
}

// told is a living row, with how long it lives.
func (t *table) told(place string) (row, bool) {
	r, alive := t.live(place, false)
	if !alive {
		return nil, false
	}
	told := maps.Clone(r)
	if expires := t.rows[place].expires; !expires.IsZero() {
		left := (time.Until(expires) + time.Second - 1) / time.Second
		told[ttlOf+"owner)"] = binary.BigEndian.AppendUint32(nil, uint32(left))
	}
	return told, true
}

func matches(r row, where []condition, bound [][]byte) bool {
	for _, c := range where {
		wanted := c.value.bind(bound)
		if c.in && !slices.Contains(elements(wanted), string(r[c.column])) || !c.in &&
			string(wanted) != string(r[c.column]) {
			return false
		}
	}
	return true
}

// elements are those of a list in wire form.
func elements(list []byte) (all []string) {
	for count, rest := binary.BigEndian.Uint32(list), list[4:]; count > 0; count-- {
		length := binary.BigEndian.Uint32(rest)
		all = append(all, string(rest[4:4+length]))
		rest = rest[4+length:]
	}
	return all
}
