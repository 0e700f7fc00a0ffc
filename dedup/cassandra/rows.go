package cassandra

import (
	"encoding/binary"
	"slices"
	"sync"
	"time"

	"github.com/kdedup/kdedup/dedup"
)

// rows are the bound values of one conditional batch. Their memory is used again: once a query has
// returned, the driver has copied them into its frame, and it never runs a query twice by itself
// (Options.connect).
type rows struct {
	bucket cell // encoded once for all rows
	ids    []blob
	owners []cell
	bytes  []byte // of the owners
	values []any  // bucket, message_id, owner of each row
}

var rowsPool = sync.Pool{New: func() any { return new(rows) }}

// borrowRows returns values for n rows of a bucket, none of them bound yet.
func borrowRows(bucket int32, n int) *rows {
	r := rowsPool.Get().(*rows)
	r.bucket = binary.BigEndian.AppendUint32(r.bucket[:0], uint32(bucket))
	// values points into them
	r.ids, r.owners = slices.Grow(r.ids[:0], n), slices.Grow(r.owners[:0], n)
	r.bytes, r.values = slices.Grow(r.bytes[:0], n*ownerBytes), slices.Grow(r.values[:0], 3*n)
	return r
}

// bind adds the row of a claim.
func (r *rows) bind(claim *dedup.Claim, claimedAt time.Time) {
	from := len(r.bytes)
	r.bytes = appendOwner(r.bytes, claim, claimedAt)
	r.ids = append(r.ids, blob(claim.ID))
	r.owners = append(r.owners, r.bytes[from:])
	last := len(r.ids) - 1
	r.values = append(r.values, &r.bucket, &r.ids[last], &r.owners[last])
}

// giveBack ends the use of the values. IDs share memory with records, which must not live on here.
func (r *rows) giveBack() {
	clear(r.ids)
	clear(r.values)
	rowsPool.Put(r)
}
