package proposal

import (
	"strings"

	"github.com/kdedup/kdedup/command/report"
)

// Seen says what the sample shows of a candidate, in one sentence without an end.
func (c *Candidate) Seen() string {
	var parts []string
	if c.Have == c.Of {
		parts = append(parts, "on all "+plural(c.Of, "record", "records"))
	} else {
		parts = append(parts, "on "+portion(c.Have, c.Of))
	}
	parts[0] += ", " + plural(c.Distinct, "different value", "different values")
	switch same := plural(c.Same, "copy", "copies"); {
	case c.copies() == 0:
		parts = append(parts, "no copies")
	case len(c.Ignore) > 0:
		parts = append(parts, same+" with the same content but for "+strings.Join(c.Ignore, ", "))
	default:
		parts = append(parts, same+" with the same content")
	}
	if c.Other > 0 {
		parts = append(parts, number(c.Other)+" with other content")
	}
	return strings.Join(parts, "; ")
}

func number(n int) string { return report.Number(int64(n)) }

func plural(n int, one, many string) string {
	return report.Counted(int64(n), one, many)
}

// portion is a part of the records.
func portion(n, of int) string {
	return number(n) + " of " + plural(of, "record", "records")
}
