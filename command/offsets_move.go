package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/command/offsets"
	"github.com/kdedup/kdedup/config"
	"github.com/kdedup/kdedup/connect"
	"github.com/kdedup/kdedup/connect/kafka"
	"github.com/kdedup/kdedup/connect/logreader"
	"github.com/kdedup/kdedup/internal/brokers"
)

// stablePause is between two looks at transactions that are open.
const stablePause = 100 * time.Millisecond

// move is what is known about a group that moves from one topic to another.
type move struct {
	inputs, outputs *look // at the brokers of either topic of the pipeline; mostly the same
	clusters        kafka.Clusters
	log             *slog.Logger
	from, to        side
	back            bool
	input, clean    logreader.Log
	handled         map[int32]int64 // of the pipeline on the input, if the group goes back

	committed map[int32]int64 // on the topic that the group leaves
	now       map[int32]int64 // on the topic to which it goes, if it has been there
	places    map[int32]offsets.Place
}

// side is a topic, and the group that reads it, on one cluster.
type side struct {
	*look
	topic, group string
}

// offsets are those that the group of a side has committed.
func (m *move) offsets(ctx context.Context, s side) (map[int32]int64, error) {
	all, err := offsetsAt(ctx, s.client, s.group, s.topic)
	if err != nil && m.clusters.Apart() {
		return nil, fmt.Errorf("%w (%s)", err, strings.TrimSpace(m.place(s)))
	}
	return all, err
}

// place tells of two clusters on which of them something is.
func (m *move) place(s side) string {
	switch {
	case !m.clusters.Apart():
		return ""
	case s.look == m.outputs:
		return " on the cluster of kafka.output"
	}
	return " on the cluster of the input"
}

// ask takes one step after the other, see offsets.Options: what the pipeline has committed, the
// clean topic, the group's offsets, the input.
func (m *move) ask(ctx context.Context, t config.Topic) (err error) {
	var missing []error
	for _, s := range []side{{look: m.inputs, topic: t.Input}, {look: m.outputs, topic: t.Output}} {
		names, err := s.topics(ctx)
		if err != nil {
			return err
		}
		missing = append(missing, missingTopic(s.topic, names))
	}
	if err := errors.Join(missing...); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, connect.StartTimeout)
	defer cancel()
	if m.back {
		beside := t.Input
		if m.clusters.SplitsGroup(t) {
			beside = t.FenceTopic // it has the partitions of the input, on the group's cluster
		}
		if m.handled, err = offsetsAt(ctx, m.clusters.OfGroup(t), t.ConsumerGroup,
			beside); err != nil {
			return err
		}
	}
	if err = m.describeClean(ctx, t.Output); err != nil {
		return err
	}
	if m.committed, err = m.offsets(ctx, m.from); err != nil {
		return err
	}
	if m.input, err = logreader.Describe(ctx, m.inputs.client, t.Input,
		logreader.Bounds{}); err != nil {
		return err
	}
	if len(m.committed) == 0 {
		return fmt.Errorf("consumer group %s has committed no offset of %s%s; the groups that "+
			"have are listed by kafka-consumer-groups.sh --list", m.from.group, m.from.topic,
			m.place(m.from))
	}
	m.now, err = m.offsets(ctx, m.to)
	return err
}

// describeClean waits for the transactions that are open: the brokers may show the offsets of one
// before its records, and what the pipeline has committed must lie before the ends.
func (m *move) describeClean(ctx context.Context, topic string) error {
	ends, err := kadm.NewClient(m.outputs.client).ListEndOffsets(ctx, topic)
	if err == nil {
		err = ends.Error()
	}
	if err != nil {
		return fmt.Errorf("list offsets of %s: %w", topic, err)
	}
	for {
		m.clean, err = logreader.Describe(ctx, m.outputs.client, topic, logreader.Bounds{})
		if err != nil {
			return err
		}
		open := slices.DeleteFunc(slices.Sorted(maps.Keys(m.clean.Partitions)), func(p int32) bool {
			end, _ := ends.Lookup(topic, p)
			return m.clean.Partitions[p].End >= end.Offset
		})
		if len(open) == 0 || !m.back {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("a transaction stays open on partition %d of %s: %w", open[0], topic,
				context.Cause(ctx))
		case <-time.After(stablePause):
		}
	}
}

// readerNeeds is how a consumer must read a clean topic with transactions.
const readerNeeds = "with isolation.level=read_committed; docs/readers.md says what that is in each " +
	"client, and which clients need delivery: at_least_once instead"

func offsetsAt(
	ctx context.Context, client *kgo.Client, group, topic string,
) (map[int32]int64, error) {
	fetched, err := brokers.Offsets(ctx, kadm.NewClient(client), group, topic)
	if errors.Is(err, kerr.GroupAuthorizationFailed) ||
		errors.Is(err, kerr.TopicAuthorizationFailed) {
		err = fmt.Errorf("%w; docs/security.md lists the rights of offsets", err)
	}
	if err != nil {
		return nil, err
	}
	committed := make(map[int32]int64)
	for p, o := range fetched {
		if o.Err != nil {
			return nil, fmt.Errorf("fetch the offset of %s[%d] of consumer group %s: %w", topic, p,
				group, o.Err)
		}
		if o.At >= 0 {
			committed[p] = o.At
		}
	}
	return committed, nil
}

// placed is one row of what is printed.
type placed struct {
	Partition int32  `json:"partition"`
	From      int64  `json:"from"`
	To        int64  `json:"to"`
	Now       *int64 `json:"now"`
	Again     int64  `json:"again"`
}

func (m *move) rows() (rows []placed) {
	for _, p := range slices.Sorted(maps.Keys(m.places)) {
		row := placed{Partition: p, From: m.committed[p], To: m.places[p].Offset,
			Again: m.places[p].Again}
		if now, ok := m.now[p]; ok {
			row.Now = &now
		}
		rows = append(rows, row)
	}
	return rows
}

func (m *move) print(out io.Writer, format string) error {
	if format == formatJSON {
		return json.NewEncoder(out).Encode(m.rows())
	}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(table, "PARTITION\t%s\t%s\tCOMMITTED THERE\tAGAIN\t\n", m.from.topic, m.to.topic)
	for _, row := range m.rows() {
		now := "–"
		if row.Now != nil {
			now = fmt.Sprint(*row.Now)
		}
		fmt.Fprintf(table, "%d\t%d\t%d\t%s\t%d\t\n", row.Partition, row.From, row.To, now,
			row.Again)
	}
	return table.Flush()
}

func (m *move) apply(ctx context.Context, out io.Writer) error {
	commit := make(kadm.Offsets)
	for p, place := range m.places {
		commit.AddOffset(m.to.topic, p, place.Offset, -1)
	}
	answers, err := kadm.NewClient(m.to.client).CommitOffsets(ctx, m.to.group, commit)
	if err == nil {
		err = answers.Error()
	}
	if err != nil {
		return fmt.Errorf("commit offsets of consumer group %s%s: %w", m.to.group,
			m.place(m.to), err)
	}
	fmt.Fprintf(out, "committed for %d partitions: %s goes on on %s%s\n", len(commit[m.to.topic]),
		m.to.group, m.to.topic, m.place(m.to))
	return nil
}
