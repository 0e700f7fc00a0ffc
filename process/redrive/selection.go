package redrive

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/kdedup/kdedup/dedup"
)

// Selection says which letters are meant. What is empty leaves none out.
type Selection struct {
	// Reasons of dead letters, or verdicts of duplicates; missing_id stands for all that begin so.
	Reasons    []string
	IDs        []dedup.ID
	Partitions []int32       // of the topic that the letters are on
	Offsets    []OffsetRange // likewise
	From, To   time.Time     // of the record on the input; To is excluded
}

// OffsetRange are offsets, both ends included.
type OffsetRange struct{ First, Last int64 }

// ParseOffsets reads 12, 10-20, 10- or -20.
func ParseOffsets(text string) (OffsetRange, error) {
	first, last, isRange := strings.Cut(text, "-")
	r := OffsetRange{0, math.MaxInt64}
	var err error
	if first != "" {
		r.First, err = strconv.ParseInt(first, 10, 64)
	}
	if last != "" && err == nil {
		r.Last, err = strconv.ParseInt(last, 10, 64)
	}
	if !isRange {
		r.Last = r.First
	}
	if err != nil || first == "" && last == "" {
		return r, fmt.Errorf("must be an offset or a range as 10-20, 10- or -20, got %q", text)
	}
	if r.First > r.Last {
		return r, fmt.Errorf("must not end before it begins, got %q", text)
	}
	return r, nil
}

const missingID = "missing_id"

// matches reports whether a letter is meant. The ID is empty if its record has none.
func (s *Selection) matches(l *letter) bool {
	return s.matchesReason(l.why()) && s.matchesPlace(l.place) &&
		s.matchesTime(l.Record.Timestamp) &&
		(len(s.IDs) == 0 || l.missing == dedup.NotMissing && slices.Contains(s.IDs, l.id))
}

func (s *Selection) matchesReason(why string) bool {
	return len(s.Reasons) == 0 || slices.ContainsFunc(s.Reasons, func(wanted string) bool {
		return why == wanted || wanted == missingID && isMissing(why)
	})
}

func isMissing(reason string) bool { return strings.HasPrefix(reason, missingID+"_") }

func (s *Selection) matchesPlace(at dedup.Coordinates) bool {
	within := func(r OffsetRange) bool { return r.First <= at.Offset && at.Offset <= r.Last }
	return (len(s.Partitions) == 0 || slices.Contains(s.Partitions, at.Partition)) &&
		(len(s.Offsets) == 0 || slices.ContainsFunc(s.Offsets, within))
}

func (s *Selection) matchesTime(at time.Time) bool {
	return (s.From.IsZero() || !at.Before(s.From)) && (s.To.IsZero() || at.Before(s.To))
}
