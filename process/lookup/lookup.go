// Package lookup answers what is known about one message ID: for kdedup id lookup, and for the
// status page.
package lookup

import (
	"context"
	"encoding/hex"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/config"
	"github.com/kdedup/kdedup/connect"
	"github.com/kdedup/kdedup/connect/kafka"
	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/fence"
	"github.com/kdedup/kdedup/process/server"
)

// ManualOwner owns the IDs that are claimed by hand. No record has such coordinates.
var ManualOwner = dedup.Coordinates{Partition: -1, Offset: -1, LeaderEpoch: -1}

// Question is the work on one ID, of a command or of the status page.
type Question struct {
	Topic    config.Topic
	Scope    dedup.Scope
	ID       dedup.ID
	Store    dedup.Store
	Clusters func(context.Context) (kafka.Clusters, error)
}

// Answer is what is known about an ID.
type Answer struct {
	ID          string // in hexadecimal digits if it is not UTF-8
	Hex         bool   // it is in hexadecimal digits
	Scope       string // consumer group or scope group, and scope
	Seen        bool   // the fields below mean nothing otherwise
	Manual      bool   // claimed by hand: there is no owner
	TopicID     string
	Partition   int32
	Offset      int64
	LeaderEpoch int32
	Fingerprint string
	ClaimedAt   time.Time
	Ends        time.Time // by the ttl that is configured now
	Sliding     bool      // copies put the end off; so the store has told it
	Forwarded   string
}

// Ask asks the store, and the fence for what became of the owner.
func (t *Question) Ask(ctx context.Context) (Answer, error) {
	answer, err := t.Store.Lookup(ctx, t.Scope, t.ID)
	found := Answer{ID: connect.ShownID(t.ID), Hex: !utf8.ValidString(string(t.ID)),
		Scope: t.Scope.ConsumerGroup + "/" + t.Scope.Name}
	if err != nil || answer.Outcome == dedup.Undecided {
		return found, err
	}
	owner := answer.Owner
	found.Seen, found.Manual = true, owner == ManualOwner
	found.TopicID, found.LeaderEpoch = hex.EncodeToString(owner.TopicID[:]), owner.LeaderEpoch
	found.Partition, found.Offset = owner.Partition, owner.Offset
	found.Fingerprint, found.ClaimedAt = hex.EncodeToString(answer.Fingerprint[:]), answer.ClaimedAt
	found.Ends = answer.ClaimedAt.Add(t.Topic.TTL)
	if t.Topic.Sliding() {
		if err := t.askEnd(ctx, &found); err != nil {
			return found, err
		}
	}
	if !found.Manual {
		found.Forwarded = t.forwarded(ctx, owner, answer.ClaimedAt)
	}
	return found, nil
}

// askEnd asks the store when the claim ends, which copies may have put off.
func (t *Question) askEnd(ctx context.Context, found *Answer) error {
	store, tells := dedup.Unwrapped(t.Store).(dedup.Exporter)
	if !tells {
		return nil
	}
	standing, err := store.Find(ctx, t.Scope, []dedup.ID{t.ID})
	if err == nil && len(standing) == 1 {
		found.Ends, found.Sliding = standing[0].Ends, true
	}
	return err
}

// askPatience is for what tells whether the owner is a record of the pipeline's own topics; the
// fence tells the rest.
const askPatience = 5 * time.Second

// forwarded compares the owner with the fence of its partition. The owner may be a record of
// another input that shares the scope, whose fence is not this topic's, or of the clean topic
// itself.
func (t *Question) forwarded(
	ctx context.Context, owner dedup.Coordinates, claimed time.Time,
) string {
	clusters, err := t.Clusters(ctx)
	if err != nil {
		return "unknown: " + err.Error()
	}
	ctx, cancel := context.WithTimeout(ctx, 15*time.Second)
	defer cancel()
	asking, cancelAsking := context.WithTimeout(ctx, askPatience) // another cluster may be down
	defer cancelAsking()
	clean, err := kafka.TopicID(asking, clusters.Output, t.Topic.Output)
	if err == nil && clean != [16]byte{} && owner.TopicID == clean {
		return "yes: it stands on " + t.Topic.Output + ", see kdedup backfill"
	}
	if letters := t.lettersOf(asking, clusters.Output, owner.TopicID); letters != "" {
		return fmt.Sprintf("by kdedup redrive, of the letter at %s[%d]@%d; if a redrive was "+
			"killed, when it is run again", letters, owner.Partition, owner.Offset)
	}
	handled, err := fence.Handled(ctx, clusters.OfGroup(t.Topic), clusters.Input,
		t.Topic.FenceTopic, t.Topic.Input, owner.TopicID,
		&kgo.Record{Partition: owner.Partition, Offset: owner.Offset,
			LeaderEpoch: owner.LeaderEpoch}, claimed)
	switch {
	case err != nil:
		return "unknown: " + err.Error()
	case handled:
		return "yes"
	default:
		return "not for sure: the record is not below the fence of " + t.Topic.Input
	}
}

// lettersOf is the topic of dead letters or duplicates that has the ID, or empty.
func (t *Question) lettersOf(ctx context.Context, client *kgo.Client, id [16]byte) string {
	for _, topic := range []string{t.Topic.DeadLetterTopic, t.Topic.DuplicatesTopic} {
		if topic == "" || id == [16]byte{} {
			continue
		}
		if letters, err := kafka.TopicID(ctx, client, topic); err == nil && letters == id {
			return topic
		}
	}
	return ""
}

// Rows is the lookup for people.
func (l Answer) Rows() []server.Row {
	var rows []server.Row
	row := func(name, format string, args ...any) {
		rows = append(rows, server.Row{Name: name, Text: fmt.Sprintf(format, args...)})
	}
	row("id", "%s", l.ID)
	row("scope", "%s", l.Scope)
	switch {
	case !l.Seen:
		row("seen", "no: the next copy will be forwarded")
		return rows
	case l.Manual:
		row("seen", "claimed by hand: every copy is a duplicate")
	default:
		row("seen", "yes")
		row("owner", "partition %d, offset %d, leader epoch %d, topic ID %s", l.Partition, l.Offset,
			l.LeaderEpoch, l.TopicID)
	}
	row("claimed", "%s, %s ago", l.ClaimedAt.UTC().Format(time.RFC3339),
		time.Since(l.ClaimedAt).Round(time.Second))
	why := "by the ttl that is configured now"
	if l.Sliding {
		why = "unless a copy comes before"
	}
	row("ends", "%s, %s", l.Ends.UTC().Format(time.RFC3339), why)
	if !l.Manual {
		row("fingerprint", "%s", l.Fingerprint)
		row("forwarded", "%s", l.Forwarded)
	}
	return rows
}
