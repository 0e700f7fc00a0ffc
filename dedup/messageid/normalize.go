package messageid

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/dedup"
)

// Ways to spell an ID the same however a producer does.
const (
	NormalizeTrim    = "trim"
	NormalizeUnquote = "unquote"
	NormalizeLower   = "lower"
	NormalizeUUID    = "uuid"
	NormalizePayload = "payload"
)

// maxNormalize bounds how much work an ID is.
const maxNormalize = 8

// spelling returns an ID in another spelling. What it is given is not modified, and shared by the
// result where nothing changes.
type spelling func(id []byte) []byte

func spellingOf(name string) (spelling, error) {
	switch name {
	case NormalizeTrim:
		return trimmed, nil
	case NormalizeUnquote:
		return unquoted, nil
	case NormalizeLower:
		return lowered, nil
	case NormalizeUUID:
		return canonicalUUID, nil
	case NormalizePayload:
		return unwrapped, nil
	}
	return nil, fmt.Errorf("normalize: %q is not trim, payload, unquote, lower or uuid", name)
}

// normalized applies spellings in their order. An ID of which nothing is left is an empty one.
func normalized(find finder, name string, names []string) (finder, string, error) {
	if len(names) > maxNormalize {
		return nil, "", fmt.Errorf("normalize has %d steps, at most %d are allowed", len(names),
			maxNormalize)
	}
	var steps []spelling
	for _, name := range names {
		step, err := spellingOf(name)
		if err != nil {
			return nil, "", err
		}
		steps = append(steps, step)
	}
	normal := func(r *kgo.Record) (dedup.ID, dedup.MissingReason) {
		id, missing := find(r)
		if missing != dedup.NotMissing {
			return "", missing
		}
		text := bytesOf(id)
		for _, step := range steps {
			text = step(text)
		}
		if len(text) == 0 {
			return "", dedup.MissingEmpty
		}
		return shared(text)
	}
	return normal, name + "|" + strings.Join(names, "|"), nil
}

// errNormalize is about places of whose bytes an ID is not made as they are.
var errNormalize = errors.New("normalize belongs to places without parts, not to value_hash " +
	"or debezium")

// trimmed takes away white space of ASCII: what Unicode calls white space changes over the years.
func trimmed(id []byte) []byte { return bytes.Trim(id, " \t\n\v\f\r") }

// unquoted is what a JSON string stands for; everything else is itself.
func unquoted(id []byte) []byte {
	if len(id) < 2 || id[0] != '"' || skipString(id, 0) != len(id) {
		return id
	}
	return unescaped(id[1 : len(id)-1])
}

// unwrapped is the payload of a document of schema and payload; everything else is itself. A
// payload that is null is nothing.
func unwrapped(id []byte) []byte {
	payload, wrapped := payloadOf(id)
	switch {
	case !wrapped:
		return id
	case string(payload) == "null":
		return nil
	}
	return payload
}

// lowered changes letters of ASCII only, for the reason that trimmed has.
func lowered(id []byte) []byte {
	upper := slices.IndexFunc(id, func(c byte) bool { return 'A' <= c && c <= 'Z' })
	if upper < 0 {
		return id
	}
	id = bytes.Clone(id)
	for i := upper; i < len(id); i++ {
		if 'A' <= id[i] && id[i] <= 'Z' {
			id[i] += 'a' - 'A'
		}
	}
	return id
}

// uuidForm has a digit for each x.
const uuidForm = "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx"

// canonicalUUID writes a UUID in lower case and with hyphens that stands in one of the usual
// spellings: in capitals, without hyphens, in braces or parentheses, behind urn:uuid:. Everything
// else is itself, the 16 bytes of a UUID too: they may be 16 letters.
func canonicalUUID(id []byte) []byte {
	const urn = "urn:uuid:"
	digits := id
	switch {
	case len(id) == len(urn)+len(uuidForm) && bytes.EqualFold(id[:len(urn)], []byte(urn)):
		digits = id[len(urn):]
	case len(id) > 2 && (id[0] == '{' && id[len(id)-1] == '}' ||
		id[0] == '(' && id[len(id)-1] == ')'):
		digits = id[1 : len(id)-1]
	}
	hyphens := len(digits) == len(uuidForm)
	if !hyphens && len(digits) != len(uuidForm)-4 {
		return id
	}
	var written [len(uuidForm)]byte
	at := 0
	for i := range written {
		if uuidForm[i] == '-' {
			written[i] = '-'
			if hyphens && digits[at] != '-' {
				return id
			} else if hyphens {
				at++
			}
			continue
		}
		if !isHex(digits[at]) {
			return id
		}
		written[i] = digits[at] | 0x20 // a digit has that bit
		at++
	}
	if bytes.Equal(written[:], id) {
		return id
	}
	return bytes.Clone(written[:])
}

// Respelled is an ID as normalize: [trim, payload, unquote, lower, uuid] leaves it: alike for most
// spellings of one ID.
func Respelled(id dedup.ID) dedup.ID {
	text := bytesOf(id)
	for _, step := range []spelling{trimmed, unwrapped, unquoted, lowered, canonicalUUID} {
		text = step(text)
	}
	return dedup.ID(text)
}
