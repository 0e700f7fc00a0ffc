package server

import (
	"bytes"
	"encoding/hex"
	"slices"
	"time"
	"unicode"
	"unicode/utf8"
)

// droppedShown is how many dropped copies the page lists, of all pipelines.
const droppedShown = 20

func (s *sampler) dropped(pipelines []Pipeline, now time.Time) []droppedStatus {
	all := []droppedStatus{}
	for _, p := range pipelines {
		for _, d := range p.Dropped {
			age := max(0, d.At.Sub(d.ClaimedAt).Seconds()) // the claimant's clock may be ahead
			one := droppedStatus{Topic: p.Input, At: moment{d.At, now}, Place: d.Place,
				Owner: d.Owner, Age: &age, Conflict: d.Conflict, Differs: d.Differs,
				Became: d.Became}
			if s.lookup {
				one.ID, one.Hex = textOf(d.ID)
			}
			all = append(all, one)
		}
	}
	slices.SortStableFunc(all, func(a, b droppedStatus) int { return b.At.at.Compare(a.At.at) })
	return all[:min(len(all), droppedShown)]
}

// textOf is an ID as the look-up takes it: as it is, or in hexadecimal digits.
func textOf(id []byte) (text string, inHex bool) {
	if utf8.Valid(id) && !bytes.ContainsFunc(id, unicode.IsControl) {
		return string(id), false
	}
	return hex.EncodeToString(id), true
}
