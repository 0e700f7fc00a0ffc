package cassandra

import (
	"encoding/binary"
	"errors"

	"github.com/gocql/gocql"

	"github.com/kdedup/kdedup/dedup"
)

// scanExisting reads an answer and notes every existing row of the open claims. Columns are found
// by name and rows by their ID: Cassandra lists the existing rows in clustering order, ScyllaDB one
// row per statement with nulls for those that do not exist, also when the batch was applied.
func (r *round) scanExisting(
	iter *gocql.Iter, open []int32, conditional bool,
) (applied bool, err error) {
	var (
		id    borrowed
		owner ownerCell
		left  *int
		dest  = make([]any, len(iter.Columns()))
		known = 0
	)
	for i, column := range iter.Columns() {
		switch column.Name {
		case "[applied]":
			dest[i], known = &applied, known|1
		case "message_id":
			dest[i] = &id
		case "owner":
			dest[i] = &owner
		case "ttl(owner)":
			dest[i] = &left
		}
	}
	rows := 0
	var byID map[string]int32
	for iter.Scan(dest...) {
		rows++
		if owner.found && !applied {
			if byID == nil { // most batches apply and have no row to look up
				byID = r.index(open)
			}
			if at, ok := byID[string(id)]; ok {
				r.answers[at] = owner.answer
				if r.left != nil && left != nil {
					r.left[at] = *left
				}
			}
		}
		id, owner.found, left = nil, false, nil
	}
	if err := iter.Close(); err != nil {
		return false, err
	}
	if conditional && (known == 0 || rows == 0) {
		return false, errors.New("answer to a conditional statement without [applied]")
	}
	return applied, nil
}

// index finds the open claims by ID.
func (r *round) index(open []int32) map[string]int32 {
	byID := make(map[string]int32, len(open))
	for _, i := range open {
		byID[string(r.claims[i].ID)] = i
	}
	return byID
}

// appendIDs is the wire form of a list of blobs: the count, then each length and its bytes.
func appendIDs(claims []dedup.Claim, open []int32) cell {
	list := binary.BigEndian.AppendUint32(nil, uint32(len(open)))
	for _, i := range open {
		list = binary.BigEndian.AppendUint32(list, uint32(len(claims[i].ID)))
		list = append(list, claims[i].ID...)
	}
	return list
}
