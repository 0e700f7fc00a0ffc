package proposal

import (
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/kdedup/kdedup/command/report"
	"github.com/kdedup/kdedup/dedup/messageid"
)

// kind is the form of most examples.
func (c *column) kind(now time.Time) string {
	counts := make(map[string]int)
	for _, e := range c.examples {
		counts[report.KindOf([]byte(e.text), now)]++
	}
	for kind, n := range counts {
		if 10*n >= 9*len(c.examples) {
			return kind
		}
	}
	return report.KindOther
}

// isTime reports whether nearly all examples are times: equal ones are equal by chance.
func (c *column) isTime() bool {
	named, times := nameOf(c.place).isTime(), 0
	for _, e := range c.examples {
		if isTime(e.text, e.at, named) {
			times++
		}
	}
	return times > 0 && 10*times >= 9*len(c.examples)
}

// isNumber reports whether nearly all examples are numbers, with or without a point.
func (c *column) isNumber() bool {
	numbers := 0
	for _, e := range c.examples {
		if _, err := strconv.ParseFloat(e.text, 64); err == nil {
			numbers++
		}
	}
	return 10*numbers >= 9*len(c.examples)
}

var timeLayouts = []string{
	time.RFC3339, "2006-01-02T15:04:05", "2006-01-02T15:04:05Z0700", "2006-01-02 15:04:05",
	"2006-01-02 15:04:05Z07:00", "2006-01-02 15:04:05 MST", "2006-01-02 15:04:05.999999 UTC",
	"2006-01-02T15:04Z07:00", "2006-01-02T15:04", "2006-01-02", "2006/01/02 15:04:05", "20060102",
	time.RFC1123, time.RFC1123Z, time.RFC850, time.ANSIC, time.UnixDate,
}

// near is how far from its record's timestamp a number may be that is taken for a time. A number
// in the place of that name may be any time since 2010.
const near = 60 * 24 * time.Hour

func isTime(text string, record time.Time, named bool) bool {
	if len(text) < len("20060102") || len(text) > 40 {
		return false
	}
	for _, layout := range timeLayouts {
		at, err := time.Parse(layout, text)
		if err == nil && (layout != "20060102" || named) {
			return at.Year() >= 1900 && at.Year() < 2200
		}
	}
	number, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return false
	}
	for unit := 1.0; unit <= 1e9; unit *= 1e3 { // seconds, milliseconds and so on
		if number/unit < 1_262_304_000 || number/unit > 4_102_444_800 { // 2010 to 2100
			continue
		}
		at := time.UnixMilli(int64(number / unit * 1e3))
		if named && at.Before(record.Add(near)) || at.Sub(record).Abs() < near {
			return true
		}
	}
	return false
}

// name is how a place is called.
type name struct {
	words []string // in lower case; of a path those of all names
	last  []string // those of the last name of a path
	depth int
}

func nameOf(p Place) name {
	text := p.Name
	if p.Path != "" {
		text = p.Path
	}
	if p.From == "key" || p.Path == messageid.Whole {
		return name{}
	}
	n := name{words: wordsOf(text)}
	segments := strings.FieldsFunc(strings.ReplaceAll(text, "|json", ""), func(r rune) bool {
		return r == '.' && p.Path != ""
	})
	n.depth = len(segments)
	if n.depth > 0 {
		n.last = wordsOf(segments[n.depth-1])
	}
	return n
}

// wordsOf parts names as people write them: message_id, message-id, messageId, MessageID.
func wordsOf(text string) (words []string) {
	var word []rune
	end := func() {
		if len(word) > 0 {
			words = append(words, strings.ToLower(string(word)))
		}
		word = nil
	}
	runes := []rune(text)
	for i, r := range runes {
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) {
			end()
			continue
		}
		before := i > 0 && unicode.IsLower(runes[i-1])
		behind := i > 0 && i+1 < len(runes) && unicode.IsUpper(runes[i-1]) &&
			unicode.IsLower(runes[i+1])
		if unicode.IsUpper(r) && (before || behind) {
			end()
		}
		word = append(word, r)
	}
	end()
	return words
}

var (
	idNames = []string{"messageid", "msgid", "messageuuid", "messagekey", "id", "uuid", "guid",
		"ulid", "uid", "eventid", "eventuuid", "eventkey", "ceid", "dedupid", "dedupkey",
		"deduplicationid", "deduplicationkey", "idempotencykey", "idempotencyid", "idempotenceid",
		"idempotencetoken", "recordid", "transactionid", "txid", "mid"}
	idWords      = []string{"id", "uuid", "guid", "ulid", "key", "uid", "ids"}
	attemptWords = []string{"attempt", "attempts", "retry", "retries", "retried", "retrycount",
		"try", "tries", "redelivery", "redelivered", "redeliveries", "resend", "resent", "replay",
		"replayed", "redrive", "attemptid", "attemptno"}
	foreignWords = []string{"user", "customer", "client", "account", "tenant", "session", "trace",
		"traceparent", "span", "correlation", "causation", "parent", "device", "product", "item",
		"store", "shop", "organization", "organisation", "company", "partition", "batch", "host",
		"server", "instance", "producer", "source", "schema", "owner", "group", "request",
		"category", "type", "sku", "ip", "email", "country", "region"}
	sequenceWords = []string{"seq", "sequence", "seqno", "number", "no", "nr", "num", "index",
		"idx", "line", "position", "revision", "version", "offset", "counter", "lsn", "scn",
		"nonce"}
	timeWords = []string{"ts", "time", "timestamp", "date", "datetime", "at", "ms", "millis",
		"created", "updated", "sent", "received", "when"}
)

func (n name) isTime() bool     { return n.has(timeWords) }
func (n name) isAttempt() bool  { return n.has(attemptWords) }
func (n name) isForeign() bool  { return n.has(foreignWords) }
func (n name) isSequence() bool { return hasAny(n.last, sequenceWords) }

func (n name) has(words []string) bool { return hasAny(n.words, words) }

func hasAny(words, of []string) bool {
	return slices.ContainsFunc(words, func(word string) bool { return slices.Contains(of, word) })
}

// isID reports whether people call so what names a message: whole says that it says nothing else.
func (n name) isID(topic string) (is, whole bool) {
	words := n.last
	for len(words) > 1 && (words[0] == "x" || words[0] == "kafka") {
		words = words[1:]
	}
	whole = slices.Contains(idNames, strings.Join(words, ""))
	last := len(words) - 1
	if is = whole || last >= 0 && slices.Contains(idWords, words[last]); is && !whole {
		// orders: order_id
		about := strings.Join(words[:last], "")
		whole = slices.ContainsFunc(wordsOf(topic), func(word string) bool {
			return about == word || about == singular(word)
		})
	}
	return is, whole
}

func singular(word string) string {
	if stem, ok := strings.CutSuffix(word, "ies"); ok {
		return stem + "y"
	}
	return strings.TrimSuffix(word, "s")
}
