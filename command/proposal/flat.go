package proposal

import (
	"slices"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/command/report"
	"github.com/kdedup/kdedup/dedup/messageid"
)

// flatPositions are the fields of a change that say where it stands in the log of its database, as
// add.fields of Debezium's ExtractNewRecordState names them.
var flatPositions = [][]string{
	{"lsn"},
	{"file", "pos", "row"},
	{"commit_lsn", "change_lsn", "event_serial_no"},
	{"change_lsn", "event_serial_no"},
	{"scn", "rs_id", "ssn"},
}

const flatRemedy = "let the transform add it, by add.fields: op,lsn (PostgreSQL), " +
	"op,file,pos,row (MySQL, MariaDB), op,commit_lsn,change_lsn,event_serial_no (SQL Server) or " +
	"op,scn,rs_id,ssn (Oracle), see docs/recipes/debezium.md"

// flattened says on which records a row stands without its change; empty: on few.
func flattened(records []*kgo.Record) string {
	flat, of := 0, 0
	for _, r := range records {
		if messageid.IsTombstone(r.Value) {
			continue
		}
		of++
		if messageid.IsFlat(r) {
			flat++
		}
	}
	if share(flat, of) <= 0.5 {
		return ""
	}
	return "on " + portion(flat, of) + " Debezium's ExtractNewRecordState has made a row of the " +
		"change"
}

// refuseRows is about rows without their changes: what stands in a row names the row, and equal
// rows are states. Only the place of the change is an ID, with the key and what was done.
func (j *judge) refuseRows(flat string) {
	for _, c := range j.all {
		if c.Refused == "" {
			c.Refused, c.never = flat+": this names the row, or how it is, and not the change", true
		}
	}
	for _, from := range []string{j.fieldsFrom(), "header"} {
		for _, prefix := range []string{messageid.FlatPrefix, messageid.FlatPrefix + "source_"} {
			for _, fields := range flatPositions {
				if c := j.flatChange(from, prefix, fields); c != nil {
					j.all = append(j.all, c)
					return
				}
			}
		}
	}
	for _, c := range j.all {
		if c.Places[0] == hashPlace {
			c.Refused = flat + ", and the place of the change is gone: equal rows are states, not " +
				"copies; " + flatRemedy
		}
	}
}

// fieldsFrom is where the fields of values are.
func (j *judge) fieldsFrom() string {
	if j.schemas.readsValues() {
		return j.schemas.format
	}
	return "json"
}

// flatChange is nil if rows have no such fields.
func (j *judge) flatChange(from, prefix string, fields []string) *Candidate {
	c := &Candidate{Of: j.alive, Kind: report.KindOther, ids: make([]uint64, len(j.records))}
	add := func(p Place) bool {
		column := j.column(p)
		if column == nil {
			return false
		}
		have := 0
		for i, id := range column.ids {
			switch {
			case id == 0:
				c.ids[i] = 0
			case len(c.Places) == 0:
				have, c.ids[i] = have+1, id
			case c.ids[i] != 0:
				have, c.ids[i] = have+1, c.ids[i]*31+id|1
			}
		}
		c.Places = append(c.Places, p)
		return share(have, j.alive) >= nearlyAll
	}
	place := func(name string) Place {
		if from == "header" {
			return Place{From: from, Name: prefix + name}
		}
		return Place{From: from, Path: prefix + name}
	}
	op := place("op")
	if from != "header" {
		op.Path = messageid.FlatPrefix + "op"
	} else {
		op.Name = messageid.FlatPrefix + "op"
	}
	keyed := slices.ContainsFunc(j.records, func(r *kgo.Record) bool { return len(r.Key) > 0 })
	if keyed && !add(Place{From: "key"}) || !add(op) {
		return nil
	}
	for _, name := range fields {
		if !add(place(name)) {
			return nil
		}
	}
	c.set(count(c.ids, j.content))
	if !keyed {
		c.Doubt = "The records have no key: rows that one statement wrote may share the place."
	}
	return c
}
