package messageid

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/dedup"
)

func newHeader(s Source) (find finder, name string, err error) {
	kind, called := "header", s.Name
	is := func(key string) bool { return key == called }
	switch {
	case s.Name == "":
		return nil, "", errors.New("from header needs a name")
	case s.HeaderCase == HeaderAny:
		kind, called = "header_any_case", lower(s.Name)
		is = func(key string) bool { return sameHeader(key, called) }
	case s.HeaderCase != "" && s.HeaderCase != HeaderExact:
		return nil, "", fmt.Errorf("header_case %q is not exact or any", s.HeaderCase)
	}
	switch s.Occurrence {
	case OccurrenceLast:
		return fromLastHeader(is), kind + "_last:" + strconv.Quote(called), nil
	case "", OccurrenceFirst:
		return fromHeader(is), kind + ":" + strconv.Quote(called), nil
	}
	return nil, "", fmt.Errorf("occurrence %q is not first or last", s.Occurrence)
}

// sameHeader compares a name with one in small letters, as HTTP does: beside ASCII, each byte
// counts.
func sameHeader(key, lowered string) bool {
	if len(key) != len(lowered) {
		return false
	}
	for i := range len(key) {
		if lowerByte(key[i]) != lowered[i] {
			return false
		}
	}
	return true
}

func lower(text string) string {
	lowered := []byte(text)
	for i, b := range lowered {
		lowered[i] = lowerByte(b)
	}
	return string(lowered)
}

func lowerByte(b byte) byte {
	if 'A' <= b && b <= 'Z' {
		return b + 'a' - 'A'
	}
	return b
}

// fromHeader takes the first header of that name: what the producer set, not what a proxy or an
// interceptor appended behind it.
func fromHeader(is func(key string) bool) finder {
	return func(r *kgo.Record) (dedup.ID, dedup.MissingReason) {
		for i := range r.Headers {
			if is(r.Headers[i].Key) {
				return shared(r.Headers[i].Value)
			}
		}
		return "", dedup.MissingAbsent
	}
}

// fromLastHeader takes what was appended last, for records that are sent on with an ID of their
// own.
func fromLastHeader(is func(key string) bool) finder {
	return func(r *kgo.Record) (dedup.ID, dedup.MissingReason) {
		for i := len(r.Headers) - 1; i >= 0; i-- {
			if is(r.Headers[i].Key) {
				return shared(r.Headers[i].Value)
			}
		}
		return "", dedup.MissingAbsent
	}
}
