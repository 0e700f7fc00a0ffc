package cassandralog

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// A row keeps its block behind
//
//	version       1 byte
//	mark          of the row, 8 bytes: a random number
//	after         the mark of the row in front of it, 8 bytes; 0: it does not say
//	time, ends    of the log, in milliseconds, 8 bytes each
//
// all of them big-endian.
const (
	rowVersion     = 1
	rowHeaderBytes = 1 + 4*8
)

// row is a block in its place.
type row struct {
	seq         int64
	mark, after int64
	time        int64 // of the log's clock
	ends        int64 // until when the block must be kept; never before that of the row in front
	block       []byte
}

var errRow = errors.New("a row of the claim log is in no format that this version knows; if a " +
	"newer version of kdedup wrote it, upgrade this one")

func (r *row) append(to []byte) []byte {
	to = append(to, rowVersion)
	for _, n := range []int64{r.mark, r.after, r.time, r.ends} {
		to = binary.BigEndian.AppendUint64(to, uint64(n))
	}
	return append(to, r.block...)
}

// parse keeps a part of the data.
func (r *row) parse(data []byte) error {
	if len(data) < rowHeaderBytes || data[0] != rowVersion {
		return fmt.Errorf("%w (%d bytes)", errRow, len(data))
	}
	for i, field := range []*int64{&r.mark, &r.after, &r.time, &r.ends} {
		*field = int64(binary.BigEndian.Uint64(data[1+8*i:]))
	}
	r.block = data[rowHeaderBytes:]
	return nil
}
