package config

import (
	"math"
	"strconv"
	"strings"
)

// Bytes is a size. In a file it is a whole number, or a text with a unit: 16MiB, 512KiB, 1GB.
type Bytes int

var byteUnits = []struct {
	name string
	of   Bytes
}{
	// the first that divides a size is the one that it is written in
	{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10},
	{"GB", 1e9}, {"MB", 1e6}, {"kB", 1e3}, {"B", 1},
}

// String is exact: it is read as the same size.
func (b Bytes) String() string {
	for _, unit := range byteUnits {
		if b != 0 && b%unit.of == 0 && unit.of > 1 {
			return strconv.Itoa(int(b/unit.of)) + unit.name
		}
	}
	return strconv.Itoa(int(b))
}

func parseBytes(text string) (Bytes, error) {
	digits, of := text, Bytes(1)
	for _, unit := range byteUnits {
		if number, found := strings.CutSuffix(text, unit.name); found {
			digits, of = strings.TrimSuffix(number, " "), unit.of
			break
		}
	}
	n, err := strconv.Atoi(digits)
	if err == nil && (n > math.MaxInt/int(of) || n < math.MinInt/int(of)) {
		err = strconv.ErrRange
	}
	return Bytes(n) * of, err
}
