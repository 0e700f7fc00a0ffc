package main

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"text/tabwriter"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/fence"
	"github.com/kdedup/kdedup/internal/kafka"
	"github.com/kdedup/kdedup/server"
)

func newIDLookup() *cobra.Command {
	var (
		flags  idFlags
		asJSON bool
	)
	cmd := &cobra.Command{
		Use:   "lookup ID",
		Short: "Tell whether an ID was seen, by which record, and whether that was forwarded",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return flags.with(cmd, args[0], func(task *idTask) error {
				found, err := task.lookup(cmd.Context())
				if err != nil {
					return err
				}
				if asJSON {
					return json.NewEncoder(cmd.OutOrStdout()).Encode(found)
				}
				return found.print(cmd.OutOrStdout())
			})
		},
	}
	flags.add(cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// lookup is what is known about an ID.
type lookup struct {
	ID          string    `json:"id"`     // in hexadecimal digits if it is not UTF-8
	Scope       string    `json:"scope"`  // consumer group or scope group, and scope
	Seen        bool      `json:"seen"`   // the fields below mean nothing otherwise
	Manual      bool      `json:"manual"` // claimed by hand: there is no owner
	TopicID     string    `json:"owner_topic_id"`
	Partition   int32     `json:"owner_partition"`
	Offset      int64     `json:"owner_offset"`
	LeaderEpoch int32     `json:"owner_leader_epoch"`
	Fingerprint string    `json:"fingerprint"`
	ClaimedAt   time.Time `json:"claimed_at"`
	Ends        time.Time `json:"ends"` // by the ttl that is configured now
	Forwarded   string    `json:"forwarded"`
}

func (t *idTask) lookup(ctx context.Context) (lookup, error) {
	answer, err := t.store.Lookup(ctx, t.scope, t.id)
	found := lookup{ID: shownID(t.id), Scope: t.scope.ConsumerGroup + "/" + t.scope.Name}
	if err != nil || answer.Outcome == dedup.Undecided {
		return found, err
	}
	owner := answer.Owner
	found.Seen, found.Manual = true, owner == manualOwner
	found.TopicID, found.Partition, found.Offset, found.LeaderEpoch = hex.EncodeToString(owner.TopicID[:]), owner.Partition, owner.Offset, owner.LeaderEpoch
	found.Fingerprint, found.ClaimedAt = hex.EncodeToString(answer.Fingerprint[:]), answer.ClaimedAt
	found.Ends = answer.ClaimedAt.Add(t.topic.TTL)
	if !found.Manual {
		found.Forwarded = t.forwarded(ctx, owner, answer.ClaimedAt)
	}
	return found, nil
}

// forwarded compares the owner with the fence of its partition. The owner may be a record of another
// input that shares the scope, whose fence is not this topic's, or of the clean topic itself.
func (t *idTask) forwarded(ctx context.Context, owner dedup.Coordinates, claimed time.Time) string {
	client := t.admin
	if client == nil {
		var err error
		if client, err = adminClient(ctx, t.config, slog.New(slog.DiscardHandler)); err != nil {
			return "unknown: " + err.Error()
		}
		defer client.Close()
	}
	ctx, cancel := context.WithTimeout(ctx, 15*time.Second)
	defer cancel()
	clean, err := kafka.TopicID(ctx, client, t.topic.Output)
	if err == nil && clean != [16]byte{} && owner.TopicID == clean {
		return "yes: it stands on " + t.topic.Output + ", see kdedup backfill"
	}
	handled, err := fence.Handled(ctx, client, t.topic.FenceTopic, t.topic.Input, owner.TopicID,
		&kgo.Record{Partition: owner.Partition, Offset: owner.Offset, LeaderEpoch: owner.LeaderEpoch}, claimed)
	switch {
	case err != nil:
		return "unknown: " + err.Error()
	case handled:
		return "yes"
	default:
		return "not for sure: the record is not below the fence of " + t.topic.Input
	}
}

func (l lookup) print(out io.Writer) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, row := range l.rows() {
		fmt.Fprintf(table, "%s\t%s\n", row.Name, row.Text)
	}
	return table.Flush()
}

// rows is the lookup for people.
func (l lookup) rows() []server.Row {
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
		row("owner", "partition %d, offset %d, leader epoch %d, topic ID %s", l.Partition, l.Offset, l.LeaderEpoch, l.TopicID)
	}
	row("claimed", "%s, %s ago", l.ClaimedAt.UTC().Format(time.RFC3339), time.Since(l.ClaimedAt).Round(time.Second))
	row("ends", "%s, by the ttl that is configured now", l.Ends.UTC().Format(time.RFC3339))
	if !l.Manual {
		row("fingerprint", "%s", l.Fingerprint)
		row("forwarded", "%s", l.Forwarded)
	}
	return rows
}

func shownID(id dedup.ID) string {
	if utf8.ValidString(string(id)) {
		return string(id)
	}
	return hex.EncodeToString([]byte(id))
}
