package protopath

import (
	"math"
	"strconv"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/kdedup/kdedup/dedup"
)

// finding is what was read so far. Fields may come in any order and more than once: of a single
// value the last one counts, messages in one field are one message, and elements add up.
type finding struct {
	steps   []step
	passed  [maxSteps]int // elements of each step
	text    []byte
	missing dedup.MissingReason
}

// Find returns the text of the field. It shares memory with the record where the field is a text
// already. The message is read to its end.
func (p *Plan) Find(message []byte) (text []byte, missing dedup.MissingReason) {
	f := finding{steps: p.steps, missing: dedup.MissingAbsent}
	if !f.message(message, 0) {
		return nil, dedup.MissingUnparsable
	}
	return f.text, f.missing
}

// forget takes back what was found from a step on.
func (f *finding) forget(at int) {
	f.text, f.missing = nil, dedup.MissingAbsent
	clear(f.passed[at:])
}

// message is false for bytes that are no message. The recursion is as deep as the path.
func (f *finding) message(b []byte, at int) bool {
	s := &f.steps[at]
	if s.wrapped && f.missing == dedup.MissingAbsent {
		f.zero(s)
	}
	for len(b) > 0 {
		number, wire, n := protowire.ConsumeTag(b)
		if n < 0 {
			return false
		}
		size := protowire.ConsumeFieldValue(number, wire, b[n:])
		if size < 0 {
			return false
		}
		value := b[n : n+size]
		b = b[n+size:]
		if number != s.number {
			f.rival(s, number, at)
			continue
		}
		if !f.field(s, wire, value, at) {
			return false
		}
	}
	return true
}

func (f *finding) rival(s *step, number protowire.Number, at int) {
	for _, rival := range s.rivals {
		if number == rival {
			f.forget(at)
		}
	}
}

// field reads a field of the step's number. One of another type than the schema says is passed, as
// all readers do.
func (f *finding) field(s *step, wire protowire.Type, value []byte, at int) bool {
	switch {
	case s.entry:
		if wire != protowire.BytesType {
			return true
		}
		entry, _ := protowire.ConsumeBytes(value)
		return f.entry(s, entry, at)
	case s.list && wire == protowire.BytesType && wireType(s.kind) != protowire.BytesType &&
		s.kind != protoreflect.GroupKind:
		packed, _ := protowire.ConsumeBytes(value)
		return f.packed(s, packed, at)
	case wire != wireType(s.kind):
		return true
	case s.list:
		f.passed[at]++
		if f.passed[at]-1 != s.index {
			return true
		}
	}
	return f.value(s, value, at)
}

// packed are elements without tags.
func (f *finding) packed(s *step, b []byte, at int) bool {
	for wire := wireType(s.kind); len(b) > 0; {
		n := protowire.ConsumeFieldValue(s.number, wire, b)
		if n < 0 {
			return false
		}
		if f.passed[at] == s.index {
			f.scalar(s, b[:n])
		}
		f.passed[at]++
		b = b[n:]
	}
	return true
}

// entry is one of a map: a message with a key and a value, which may be left out.
func (f *finding) entry(s *step, b []byte, at int) bool {
	key, value, given := "", []byte(nil), false
	if wireType(s.keys) != protowire.BytesType {
		key = "0"
		if s.keys == protoreflect.BoolKind {
			key = "false"
		}
	}
	for len(b) > 0 {
		number, wire, n := protowire.ConsumeTag(b)
		if n < 0 {
			return false
		}
		size := protowire.ConsumeFieldValue(number, wire, b[n:])
		if size < 0 {
			return false
		}
		switch field := b[n : n+size]; {
		case number == 1 && wire == wireType(s.keys):
			key = keyText(s.keys, field)
		case number == 2 && wire == wireType(s.kind):
			value, given = field, true
		}
		b = b[n+size:]
	}
	if key != s.key {
		return true
	}
	f.forget(at + 1)
	switch {
	case !given && s.isMessage():
		return f.message(nil, at+1)
	case !given:
		f.zero(s)
		return true
	}
	return f.value(s, value, at)
}

// zero is a value of an entry or a wrapper that is not written.
func (f *finding) zero(s *step) {
	switch {
	case wireType(s.kind) == protowire.BytesType:
		f.missing = dedup.MissingEmpty
	case s.kind == protoreflect.EnumKind:
		f.text, f.missing = s.symbol(0), dedup.NotMissing
	default:
		f.text, f.missing = []byte("0"), dedup.NotMissing
	}
}

func keyText(kind protoreflect.Kind, field []byte) string {
	if wireType(kind) == protowire.BytesType {
		text, _ := protowire.ConsumeBytes(field)
		return string(text)
	}
	if kind == protoreflect.BoolKind {
		n, _ := protowire.ConsumeVarint(field)
		return strconv.FormatBool(n != 0)
	}
	return string(digits(kind, field))
}

// value goes on in a message, or reads the field.
func (f *finding) value(s *step, value []byte, at int) bool {
	switch {
	case s.kind == protoreflect.GroupKind:
		group, n := protowire.ConsumeGroup(s.number, value)
		return n >= 0 && f.message(group, at+1)
	case s.kind == protoreflect.MessageKind:
		message, _ := protowire.ConsumeBytes(value)
		return f.message(message, at+1)
	}
	f.scalar(s, value)
	return true
}

// scalar writes the value in the one way in which it is an ID.
func (f *finding) scalar(s *step, value []byte) {
	f.text, f.missing = nil, dedup.NotMissing
	switch {
	case wireType(s.kind) == protowire.BytesType:
		if f.text, _ = protowire.ConsumeBytes(value); len(f.text) == 0 {
			f.missing = dedup.MissingEmpty
		}
	case s.kind == protoreflect.EnumKind:
		n, _ := protowire.ConsumeVarint(value)
		f.text = s.symbol(protoreflect.EnumNumber(int32(n)))
	default:
		if f.text = digits(s.kind, value); f.text == nil {
			f.missing = dedup.MissingUnsupportedType
		}
	}
	if s.implicit && isZero(wireType(s.kind), value) {
		f.text, f.missing = nil, dedup.MissingAbsent
	}
}

// isZero is about a value that a writer may as well leave out.
func isZero(wire protowire.Type, value []byte) bool {
	switch wire {
	case protowire.VarintType:
		n, _ := protowire.ConsumeVarint(value)
		return n == 0
	case protowire.BytesType:
		text, _ := protowire.ConsumeBytes(value)
		return len(text) == 0
	}
	for _, b := range value {
		if b != 0 {
			return false
		}
	}
	return true
}

// digits is nil for what is not a number. Of a floating point number they are the fewest that read
// back as it is, without an exponent.
func digits(kind protoreflect.Kind, value []byte) []byte {
	var n uint64
	switch wireType(kind) {
	case protowire.Fixed32Type:
		short, _ := protowire.ConsumeFixed32(value)
		n = uint64(short)
	case protowire.Fixed64Type:
		n, _ = protowire.ConsumeFixed64(value)
	default:
		n, _ = protowire.ConsumeVarint(value)
	}
	switch kind {
	case protoreflect.Int32Kind, protoreflect.Sfixed32Kind:
		return strconv.AppendInt(nil, int64(int32(n)), 10)
	case protoreflect.Sint32Kind:
		return strconv.AppendInt(nil, int64(int32(protowire.DecodeZigZag(n&math.MaxUint32))), 10)
	case protoreflect.Uint32Kind, protoreflect.Fixed32Kind:
		return strconv.AppendUint(nil, uint64(uint32(n)), 10)
	case protoreflect.Int64Kind, protoreflect.Sfixed64Kind:
		return strconv.AppendInt(nil, int64(n), 10)
	case protoreflect.Sint64Kind:
		return strconv.AppendInt(nil, protowire.DecodeZigZag(n), 10)
	case protoreflect.FloatKind:
		return float(float64(math.Float32frombits(uint32(n))), 32)
	case protoreflect.DoubleKind:
		return float(math.Float64frombits(n), 64)
	}
	return strconv.AppendUint(nil, n, 10)
}

func float(value float64, bits int) []byte {
	if math.IsNaN(value) || math.IsInf(value, 0) {
		return nil
	}
	return strconv.AppendFloat(nil, value, 'f', -1, bits)
}
