package avropath

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math"
	"math/big"
	"strconv"

	"github.com/twmb/avro"

	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/internal/jsonpath"
)

// Kinds of texts.
const (
	textNone    = iota // the type has none
	textPlain          // the bytes behind their length
	textFixed          // as many bytes as size says
	textUUID           // of 16 bytes
	textInt            // in digits
	textLong           //
	textEnum           // the symbol
	textFloat          //
	textDouble         //
	textDecimal        // of the bytes behind their length, or of size bytes
)

// text writes a value in the one way in which it is an ID.
type text struct {
	kind    int
	size    int // of a fixed; -1: the length stands before the bytes
	scale   int
	symbols [][]byte // of an enum
}

// leaf is where the path ends.
func leaf(n *avro.SchemaNode, path jsonpath.Path) (*finder, error) {
	if n.Type == "null" {
		return &finder{kind: findNull}, nil
	}
	t, has := textOf(n)
	if !has {
		place := path.String()
		if len(path) == 0 {
			place = "the whole of it"
		}
		return nil, fmt.Errorf("%w: %s is %s", ErrNoID, place, article(n.Type))
	}
	return &finder{kind: findText, text: t}, nil
}

// textOf is false for types without a text. Logical types change a text only where the bytes below
// them have no good one: a schema that adds a logical type to a number means the same messages as
// before.
func textOf(n *avro.SchemaNode) (t text, has bool) {
	t.size = -1
	switch n.Type {
	case "string":
		t.kind = textPlain
	case "bytes", "fixed":
		t = bytesText(n)
	case "int":
		t.kind = textInt
	case "long":
		t.kind = textLong
	case "float":
		t.kind = textFloat
	case "double":
		t.kind = textDouble
	case "enum":
		t.kind = textEnum
		for _, symbol := range n.Symbols {
			t.symbols = append(t.symbols, []byte(symbol))
		}
	default:
		return text{}, false
	}
	return t, true
}

func bytesText(n *avro.SchemaNode) text {
	t := text{kind: textPlain, size: -1}
	if n.Type == "fixed" {
		t.kind, t.size = textFixed, n.Size
	}
	switch {
	case n.LogicalType == "decimal":
		t.kind, t.scale = textDecimal, n.Scale
	case n.LogicalType == "uuid" && t.size == 16:
		t.kind = textUUID
	}
	return t
}

func (t *text) read(record []byte, i int) ([]byte, dedup.MissingReason) {
	switch t.kind {
	case textNone:
		return nil, dedup.MissingUnsupportedType
	case textInt, textLong, textEnum:
		return t.number(record, i)
	case textFloat, textDouble:
		return t.float(record, i)
	}
	var value []byte
	if t.size >= 0 {
		end := pass(record, i, int64(t.size))
		if end == invalid {
			return nil, dedup.MissingUnparsable
		}
		value = record[i:end]
	} else if value, i = lengthened(record, i); i == invalid {
		return nil, dedup.MissingUnparsable
	}
	switch {
	case len(value) == 0:
		return nil, dedup.MissingEmpty
	case t.kind == textUUID:
		return uuid(value), dedup.NotMissing
	case t.kind == textDecimal:
		return decimal(value, t.scale)
	}
	return value, dedup.NotMissing
}

func (t *text) number(record []byte, i int) ([]byte, dedup.MissingReason) {
	value, i := number(record, i)
	switch {
	case i == invalid, t.kind != textLong && value != int64(int32(value)):
		return nil, dedup.MissingUnparsable
	case t.kind != textEnum:
		return strconv.AppendInt(nil, value, 10), dedup.NotMissing
	case value < 0 || value >= int64(len(t.symbols)):
		return nil, dedup.MissingUnparsable
	}
	return t.symbols[value], dedup.NotMissing
}

// float writes the fewest digits that read back as the number, without an exponent.
func (t *text) float(record []byte, i int) ([]byte, dedup.MissingReason) {
	size := 8
	if t.kind == textFloat {
		size = 4
	}
	if pass(record, i, int64(size)) == invalid {
		return nil, dedup.MissingUnparsable
	}
	var value float64
	if size == 4 {
		value = float64(math.Float32frombits(binary.LittleEndian.Uint32(record[i:])))
	} else {
		value = math.Float64frombits(binary.LittleEndian.Uint64(record[i:]))
	}
	if math.IsNaN(value) || math.IsInf(value, 0) {
		return nil, dedup.MissingUnsupportedType
	}
	return strconv.AppendFloat(nil, value, 'f', -1, size*8), dedup.NotMissing
}

func uuid(value []byte) []byte {
	text := hex.AppendEncode(make([]byte, 0, 36), value[:4])
	for from := 4; from < 10; from += 2 {
		text = hex.AppendEncode(append(text, '-'), value[from:from+2])
	}
	return hex.AppendEncode(append(text, '-'), value[10:])
}

// maxDecimal bounds the work: the digits of a number take time that grows with their square.
const maxDecimal = 256

// decimal writes the number with as many digits behind the point as the scale says: the same number
// has several encodings, with more or fewer bytes before it.
func decimal(value []byte, scale int) ([]byte, dedup.MissingReason) {
	if len(value) > maxDecimal || scale > maxDecimal {
		return nil, dedup.MissingUnsupportedType
	}
	n := new(big.Int).SetBytes(value)
	if value[0]&0x80 != 0 {
		n.Sub(n, new(big.Int).Lsh(big.NewInt(1), uint(len(value)*8)))
	}
	digits := new(big.Int).Abs(n).Append(nil, 10)
	for len(digits) <= scale {
		digits = append([]byte{'0'}, digits...)
	}
	if scale > 0 {
		point := len(digits) - scale
		digits = append(digits[:point:point], append([]byte{'.'}, digits[point:]...)...)
	}
	if n.Sign() < 0 {
		digits = append([]byte{'-'}, digits...)
	}
	return digits, dedup.NotMissing
}
