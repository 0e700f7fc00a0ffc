// Package workload makes the records of a measurement and checks what became of them. Equal
// descriptions make equal records, so that everything that is compared has the same work to do.
package workload

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
)

const (
	// IDHeader carries a record's message ID.
	IDHeader = "message-id"
	// placeHeader carries a record's place in the order of production.
	placeHeader = "place"

	// MinSize is the least length of a value: it begins with the number of its message.
	MinSize = 8
	// UUIDBytes is the length of the default form of an ID.
	UUIDBytes = 36
	// MinIDBytes is the least length of an ID that is surely different for each message.
	MinIDBytes = 16
)

// Spec describes the records.
type Spec struct {
	Records    int
	Size       int // bytes of a value, at least MinSize
	Partitions int // of the input
	// share of the records that are copies of any earlier one, on any partition; 0 to below 1
	Duplicates float64
	Hot        int  // how many more records are copies of the very first one, spread evenly
	IDBytes    int  // length of an ID: 36 makes UUIDs, other lengths hexadecimal digits
	Ordered    bool // IDs begin with the time, as in UUIDv7; else they are random, as in UUIDv4
	Seed       uint64
}

// Default is what is measured unless flags say otherwise.
func Default() Spec {
	return Spec{Records: 1_000_000, Size: 200, Partitions: 8, Duplicates: 0.1, IDBytes: UUIDBytes,
		Seed: 1}
}

// Validate returns every mistake of the description.
func (s Spec) Validate() error {
	var errs []error
	demand := func(ok bool, format string, args ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	demand(s.Records >= 1, "records must be at least 1, got %d", s.Records)
	demand(s.Size >= MinSize, "size must be at least %d, got %d", MinSize, s.Size)
	demand(s.Partitions >= 1, "partitions must be at least 1, got %d", s.Partitions)
	demand(s.Duplicates >= 0 && s.Duplicates <= 0.99, "duplicates must be 0 to 0.99, got %v",
		s.Duplicates)
	demand(s.Hot >= 0 && s.Hot < max(1, s.Records), "hot must be 0 to less than records, got %d",
		s.Hot)
	demand(s.IDBytes >= MinIDBytes, "id-bytes must be at least %d, got %d", MinIDBytes, s.IDBytes)
	return errors.Join(errs...)
}

// item is one record: the message that it carries, and where it goes.
type item struct {
	message, place int
	partition      int32
}

// items are the records in the order of production.
func (s Spec) items() iter.Seq[item] {
	return func(yield func(item) bool) {
		random := rand.New(rand.NewPCG(s.Seed, 2))
		messages := 0
		for place := range s.Records {
			message := messages
			switch {
			case place > 0 && s.isHot(place):
				message = 0
			case messages > 0 && random.Float64() < s.Duplicates:
				message = random.IntN(messages)
			default:
				messages++
			}
			if !yield(item{message, place, int32(random.IntN(s.Partitions))}) {
				return
			}
		}
	}
}

// isHot spreads the hot copies evenly.
func (s Spec) isHot(place int) bool {
	return s.Hot*(place+1)/s.Records > s.Hot*place/s.Records
}

// orderedSince is the time of the first of IDs that are ordered; ten follow in each millisecond.
const orderedSince = 1_700_000_000_000

// ID is the ID of a message.
func (s Spec) ID(message int) string {
	var b [16]byte
	state := uint64(message) + s.Seed<<40
	binary.BigEndian.PutUint64(b[:8], mix(state))
	binary.BigEndian.PutUint64(b[8:], mix(mix(state)))
	version := byte(0x40)
	if s.Ordered {
		version = 0x70
		binary.BigEndian.PutUint64(b[:8],
			uint64(orderedSince+message/10)<<16|uint64(message%10)<<12|mix(state)&0xfff)
	}
	if s.IDBytes != UUIDBytes {
		return s.digits(b)
	}
	b[6], b[8] = b[6]&0x0f|version, b[8]&0x3f|0x80
	return uuid(b)
}

// digits are as many as the ID is long. The first 16 differ for each message.
func (s Spec) digits(b [16]byte) string {
	text := make([]byte, 0, s.IDBytes+32)
	for len(text) < s.IDBytes {
		text = hex.AppendEncode(text, b[:])
		binary.BigEndian.PutUint64(b[:8], mix(binary.BigEndian.Uint64(b[8:])))
		binary.BigEndian.PutUint64(b[8:], mix(binary.BigEndian.Uint64(b[:8])))
	}
	return string(text[:s.IDBytes])
}

func uuid(b [16]byte) string {
	text := make([]byte, 0, UUIDBytes)
	for i, end := range []int{4, 6, 8, 10, 16} {
		if i > 0 {
			text = append(text, '-')
		}
		from := []int{0, 4, 6, 8, 10}[i]
		text = hex.AppendEncode(text, b[from:end])
	}
	return string(text)
}

// field stands between random digits: about half of a value compresses, as of most JSON.
const field = `","name_of_a_field":"`

// Value is the value of a message. All its copies have the same.
func (s Spec) Value(message int) []byte {
	value := binary.BigEndian.AppendUint64(make([]byte, 0, s.Size+len(field)+16), uint64(message))
	state := uint64(message) + s.Seed<<40
	for len(value) < s.Size {
		state = mix(state)
		value = append(value, field...)
		value = hex.AppendEncode(value, binary.BigEndian.AppendUint64(nil, state))
	}
	return value[:s.Size:s.Size]
}

// mix is the step of SplitMix64: a different number for each number, without any order.
func mix(n uint64) uint64 {
	n += 0x9e3779b97f4a7c15
	n = (n ^ n>>30) * 0xbf58476d1ce4e5b9
	n = (n ^ n>>27) * 0x94d049bb133111eb
	return n ^ n>>31
}
