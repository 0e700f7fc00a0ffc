package report

import "github.com/twmb/franz-go/pkg/kgo"

// headerValues numbers the values of a producer's header. What comes after the first
// maxHeaderValues different ones is counted together.
type headerValues struct {
	name    string
	numbers map[string]uint16
	values  []string
	tallies []*tally
}

const (
	maxHeaderValues = 1000
	maxHeaderBytes  = 200 // of a value; longer ones are cut
)

// The numbers of values that have no text of their own.
const (
	headerAbsent uint16 = iota
	headerOthers
	headerFirst
)

func newHeaderValues(name string) *headerValues {
	return &headerValues{
		name: name, numbers: make(map[string]uint16),
		values: []string{"(no such header)", "(all other values)"}, tallies: []*tally{{}, {}},
	}
}

func (h *headerValues) number(r *kgo.Record) uint16 {
	for i := range r.Headers {
		if r.Headers[i].Key != h.name {
			continue
		}
		value := r.Headers[i].Value
		value = value[:min(len(value), maxHeaderBytes)]
		if n, known := h.numbers[string(value)]; known {
			return n
		}
		return h.learn(string(value))
	}
	return headerAbsent
}

func (h *headerValues) learn(value string) uint16 {
	if len(h.numbers) == maxHeaderValues {
		return headerOthers
	}
	n := uint16(len(h.values))
	h.numbers[value] = n
	h.values = append(h.values, value)
	h.tallies = append(h.tallies, &tally{})
	return n
}
