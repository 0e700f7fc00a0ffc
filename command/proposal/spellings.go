package proposal

import (
	"context"
	"fmt"
	"regexp"

	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/dedup/messageid"
)

// Spellings says which IDs of a sample are there in more than one spelling, of which
// message_id.normalize would make one.
type Spellings struct {
	IDs   int
	One   string // two spellings of one of them
	Other string
	// UUIDs says that all of them are UUIDs, which mean the same in capitals and small letters,
	// with hyphens and without (RFC 9562). Other IDs may be different ones.
	UUIDs bool
}

var uuid = regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)

// Spellings looks at the IDs that an extractor finds.
func (s Sample) Spellings(e *messageid.Extractor) Spellings {
	first := make(map[dedup.ID]dedup.ID)
	several := make(map[dedup.ID]bool)
	found := Spellings{UUIDs: true}
	if e.Resolve(context.Background(), s.Records) != nil { // from memory
		return Spellings{}
	}
	for _, r := range s.Records {
		id, missing := e.Extract(r)
		if missing != dedup.NotMissing {
			continue
		}
		normal := messageid.Respelled(id)
		if one, known := first[normal]; !known {
			first[normal] = id
		} else if one != id && !several[normal] {
			several[normal] = true
			found.One, found.Other = fmt.Sprintf("%q", one), fmt.Sprintf("%q", id)
			found.UUIDs = found.UUIDs && uuid.MatchString(string(normal))
		}
	}
	found.IDs = len(several)
	return found
}
