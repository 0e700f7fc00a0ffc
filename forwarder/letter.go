package forwarder

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Letter is a record of the dead-letter or the duplicates topic, taken apart again.
type Letter struct {
	// Record is as it was on the input, with its place there; without a leader epoch, which is not
	// told. Its time is zero if no header can carry it: Keeps refuses such a time.
	Record  *kgo.Record
	Reason  string // why it became a dead letter; empty: it is a dropped duplicate
	Verdict string // of a dropped duplicate
	// Of a copy: when the ID's owner had claimed it, and in what a conflict differs from the owner.
	ClaimedAt time.Time
	Owner     string // where the owner's record stands on its topic: [2]@373
	Differs   string
	Stub      bool // the value is not in the letter, and a long key neither
	Redrives  int  // how often the record was redriven into the input before it became a letter
}

// ErrNoLetter says that a record is not as this package writes letters.
var ErrNoLetter = errors.New("not a letter of kdedup")

// sourceLength is the number of sourceHeaders, ownerLength that of those of an owner, without what
// a conflict differs in.
const (
	sourceLength = 4
	ownerLength  = 4
)

// Open undoes what DeadLetter and Duplicate have made of a record. Their headers stand behind those
// of the record, which may have such names of its own.
func Open(r *kgo.Record) (Letter, error) {
	at := lastIndex(r.Headers, HeaderSourceTopic)
	if at < 0 || len(r.Headers) < at+sourceLength {
		return Letter{}, ErrNoLetter
	}
	source, err := openSource(r.Headers[at : at+sourceLength])
	if err != nil {
		return Letter{}, err
	}
	l := Letter{Record: source}
	l.Record.Key, l.Record.Value = r.Key, r.Value
	rest := r.Headers[at+sourceLength:]
	if keyOf(rest, 0) == HeaderVerdict {
		rest, err = l.openDuplicate(rest)
	} else {
		at--
		rest, err = l.openDead(r.Headers, at, rest)
	}
	if err != nil {
		return Letter{}, err
	}
	if keyOf(rest, 0) == HeaderKey {
		l.Record.Key, rest = nil, rest[1:]
	}
	if len(rest) > 0 {
		return Letter{}, fmt.Errorf("%w: a header %q stands behind those of kdedup", ErrNoLetter,
			rest[0].Key)
	}
	l.Record.Headers = r.Headers[:at:at]
	l.Redrives = redrives(l.Record.Headers)
	return l, nil
}

func (l *Letter) openDead(
	headers []kgo.RecordHeader, at int, rest []kgo.RecordHeader,
) ([]kgo.RecordHeader, error) {
	if at < 0 || headers[at].Key != HeaderReason || len(headers[at].Value) == 0 {
		return nil, fmt.Errorf("%w: neither a reason nor a verdict is beside the place",
			ErrNoLetter)
	}
	l.Reason = string(headers[at].Value)
	rest, err := l.openOwner(rest)
	if err != nil {
		return nil, err
	}
	if keyOf(rest, 0) == HeaderSourceSize && keyOf(rest, 1) == HeaderSourceSHA256 {
		l.Stub, rest = true, rest[2:]
	}
	return rest, nil
}

func (l *Letter) openDuplicate(rest []kgo.RecordHeader) ([]kgo.RecordHeader, error) {
	l.Verdict = string(rest[0].Value)
	return l.openOwner(rest[1:])
}

// openOwner takes what is told of the owner, if anything is.
func (l *Letter) openOwner(rest []kgo.RecordHeader) ([]kgo.RecordHeader, error) {
	if keyOf(rest, 0) != HeaderOwnerTopicID {
		return rest, nil
	}
	if keyOf(rest, ownerLength-1) != HeaderClaimedAt {
		return nil, fmt.Errorf("%w: the time of the claim is missing", ErrNoLetter)
	}
	l.Owner = fmt.Sprintf("[%s]@%s", rest[1].Value, rest[2].Value)
	at, err := time.Parse(timeFormat, string(rest[ownerLength-1].Value))
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrNoLetter, HeaderClaimedAt, err)
	}
	l.ClaimedAt = at
	if rest = rest[ownerLength:]; keyOf(rest, 0) == HeaderDiffers {
		l.Differs, rest = string(rest[0].Value), rest[1:]
	}
	return rest, nil
}

func openSource(headers []kgo.RecordHeader) (*kgo.Record, error) {
	for i, name := range [sourceLength]string{HeaderSourceTopic, HeaderSourcePartition,
		HeaderSourceOffset, HeaderSourceTime} {
		if headers[i].Key != name {
			return nil, fmt.Errorf("%w: %s is missing", ErrNoLetter, name)
		}
	}
	partition, err := strconv.ParseInt(string(headers[1].Value), 10, 32)
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrNoLetter, HeaderSourcePartition, err)
	}
	offset, err := strconv.ParseInt(string(headers[2].Value), 10, 64)
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrNoLetter, HeaderSourceOffset, err)
	}
	if partition < 0 || offset < 0 {
		return nil, fmt.Errorf("%w: the place on the input is negative", ErrNoLetter)
	}
	at, err := time.Parse(timeFormat, string(headers[3].Value))
	if err != nil {
		at = time.Time{} // of a year that the format cannot tell
	}
	return &kgo.Record{Topic: string(headers[0].Value), Partition: int32(partition),
		Offset: offset, Timestamp: at, LeaderEpoch: -1}, nil
}

// Redriven is the letter's record for the input again, with a header that counts how often it was
// there. All else is as it was.
func (l *Letter) Redriven() *kgo.Record {
	r := *l.Record
	r.Headers = make([]kgo.RecordHeader, 0, len(l.Record.Headers)+1)
	for _, h := range l.Record.Headers {
		if h.Key != HeaderRedrives {
			r.Headers = append(r.Headers, h)
		}
	}
	r.Headers = append(r.Headers, header(HeaderRedrives, strconv.Itoa(l.Redrives+1)))
	return &r
}

// redrives reads the count. A text that is none, which a producer has written, counts as more than
// any limit: the guard against loops holds, and the way to the clean topic is open.
func redrives(headers []kgo.RecordHeader) int {
	at := lastIndex(headers, HeaderRedrives)
	if at < 0 {
		return 0
	}
	n, err := strconv.ParseUint(string(headers[at].Value), 10, 31)
	if err != nil {
		return math.MaxInt32
	}
	return int(n)
}

func lastIndex(headers []kgo.RecordHeader, key string) int {
	for i := len(headers) - 1; i >= 0; i-- {
		if headers[i].Key == key {
			return i
		}
	}
	return -1
}

// keyOf is empty where there are fewer headers.
func keyOf(headers []kgo.RecordHeader, i int) string {
	if i >= len(headers) {
		return ""
	}
	return headers[i].Key
}
