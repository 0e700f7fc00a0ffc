package forwarder

import (
	"encoding/hex"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Names of the headers that kdedup adds. Values are text.
const (
	HeaderReason = "kdedup-reason" // dead-letter topic: why the record is there
	// duplicates topic and mode annotate: first, duplicate, conflict, …
	HeaderVerdict         = "kdedup-verdict"
	HeaderSourceTopic     = "kdedup-source-topic"     // the record's place on the input
	HeaderSourcePartition = "kdedup-source-partition" //
	HeaderSourceOffset    = "kdedup-source-offset"    //
	HeaderSourceTime      = "kdedup-source-timestamp" // RFC 3339 with milliseconds
	// of a dead letter without its value: the value's bytes
	HeaderSourceSize     = "kdedup-source-size"
	HeaderSourceSHA256   = "kdedup-source-sha256"   // and their SHA-256 in hexadecimal digits
	HeaderKey            = "kdedup-key"             // "made": the key is not the record's own
	HeaderOwnerTopicID   = "kdedup-owner-topic-id"  // the record that owns the message ID
	HeaderOwnerPartition = "kdedup-owner-partition" //
	HeaderOwnerOffset    = "kdedup-owner-offset"    //
	HeaderClaimedAt      = "kdedup-claimed-at"      // when it claimed, RFC 3339 with milliseconds
	HeaderDiffers        = "kdedup-differs"         // of a conflict: in what it differs from it
	// input: how often kdedup redrive has sent the record there
	HeaderRedrives = "kdedup-redrives"
)

const timeFormat = "2006-01-02T15:04:05.000Z07:00"

// Note is what is known about a record besides its bytes.
type Note struct {
	Verdict string
	Owned   bool // the fields below are set
	Owner   struct {
		TopicID   [16]byte
		Partition int32
		Offset    int64
	}
	ClaimedAt time.Time
	Differs   string // in what a conflict differs from the record of the owner; empty: not known
}

func header(key, value string) kgo.RecordHeader {
	return kgo.RecordHeader{Key: key, Value: []byte(value)}
}

func sourceHeaders(r *kgo.Record) []kgo.RecordHeader {
	return []kgo.RecordHeader{
		header(HeaderSourceTopic, r.Topic),
		header(HeaderSourcePartition, strconv.Itoa(int(r.Partition))),
		header(HeaderSourceOffset, strconv.FormatInt(r.Offset, 10)),
		header(HeaderSourceTime, r.Timestamp.UTC().Format(timeFormat)),
	}
}

func (n Note) headers() []kgo.RecordHeader {
	return append([]kgo.RecordHeader{header(HeaderVerdict, n.Verdict)}, n.owner()...)
}

// owner is what is known of the record that owns the message ID.
func (n Note) owner() []kgo.RecordHeader {
	if !n.Owned {
		return nil
	}
	headers := []kgo.RecordHeader{
		header(HeaderOwnerTopicID, hex.EncodeToString(n.Owner.TopicID[:])),
		header(HeaderOwnerPartition, strconv.Itoa(int(n.Owner.Partition))),
		header(HeaderOwnerOffset, strconv.FormatInt(n.Owner.Offset, 10)),
		header(HeaderClaimedAt, n.ClaimedAt.UTC().Format(timeFormat)),
	}
	if n.Differs != "" {
		headers = append(headers, header(HeaderDiffers, n.Differs))
	}
	return headers
}
