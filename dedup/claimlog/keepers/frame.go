package keepers

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// preamble begins a connection in each direction.
const preamble = "kdedup-keepers/1\n"

type kind byte

const (
	kindRequest kind = 1
	kindCancel  kind = 2
	kindAnswer  kind = 3
	kindBusy    kind = 4
)

const (
	headBytes = 1 + 8
	// mostFrame is more than any request of a batch takes: who asks divides batches before.
	mostFrame = 16 << 20
	// piece is what is made room for before it was received.
	piece = 256 << 10
	// inBuffer is what a connection reads ahead.
	inBuffer = 32 << 10
)

type frame struct {
	kind    kind
	number  uint64
	payload []byte
}

var errFrame = errors.New("not a connection between keepers")

func (f *frame) append(to []byte) []byte {
	to = binary.BigEndian.AppendUint32(to, uint32(headBytes+len(f.payload)))
	to = append(to, byte(f.kind))
	to = binary.BigEndian.AppendUint64(to, f.number)
	return append(to, f.payload...)
}

// readFrame makes room for a payload as it comes: the other side's word about its length costs
// nothing.
func readFrame(r io.Reader) (f frame, err error) {
	var head [4 + headBytes]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return f, err
	}
	length := binary.BigEndian.Uint32(head[:])
	f.kind, f.number = kind(head[4]), binary.BigEndian.Uint64(head[5:])
	if length < headBytes || length > mostFrame || f.kind < kindRequest || f.kind > kindBusy {
		return f, fmt.Errorf("%w: a frame of kind %d and %d bytes", errFrame, f.kind, length)
	}
	left := int(length) - headBytes
	f.payload = make([]byte, 0, min(left, piece))
	for left > 0 {
		n := min(left, max(piece, len(f.payload)))
		start := len(f.payload)
		f.payload = append(f.payload, make([]byte, n)...)
		if _, err := io.ReadFull(r, f.payload[start:]); err != nil {
			return f, err
		}
		left -= n
	}
	return f, nil
}

func readPreamble(r io.Reader) error {
	var got [len(preamble)]byte
	if _, err := io.ReadFull(r, got[:]); err != nil {
		return err
	}
	if string(got[:]) != preamble {
		return fmt.Errorf("%w: it begins with %q", errFrame, got[:])
	}
	return nil
}
