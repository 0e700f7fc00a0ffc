package redrive

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/connect/logreader"
	"github.com/kdedup/kdedup/internal/pause"
)

// marksPartition has all marks.
const marksPartition = 0

// noted is a mark's record, as people read it.
type noted struct {
	At        time.Time `json:"at"`
	Letter    string    `json:"letter"` // its topic
	TopicID   string    `json:"letter_topic_id"`
	Partition int32     `json:"letter_partition"`
	Offset    int64     `json:"letter_offset"`
	Record    string    `json:"record"` // on the input
	Into      string    `json:"into"`
}

// marks are what was redriven.
type marks struct {
	topic  string
	times  map[mark]time.Time
	ended  []mark // that mean nothing any more
	before time.Time
	log    *logreader.Log
}

// errOpen says that the marks cannot be read to their end.
var errOpen = errors.New("a transaction is open there, or its markers were lost")

const (
	marksTimeout = time.Minute
	retryMarks   = 50 * time.Millisecond
)

// readMarks reads them all. Settled: this redrive has ended the transactions of those before it, so
// that nothing may be open.
func readMarks(ctx context.Context, o *Options, settled bool) (*marks, error) {
	m := &marks{topic: o.Marks, times: make(map[mark]time.Time), log: &o.Letters,
		before: time.Now().Add(-o.Scope.TTL)}
	client, err := kgo.NewClient(o.Connection()...)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	if settled {
		if err := awaitStable(ctx, kadm.NewClient(client), o.Marks); err != nil {
			return nil, fmt.Errorf("read %s: %w", o.Marks, err)
		}
	} else if noneYet(ctx, client, o.Marks) {
		return m, nil
	}
	log, err := logreader.Describe(ctx, client, o.Marks, logreader.Bounds{})
	if err != nil {
		return nil, err
	}
	return m, eachMark(ctx, o.Connection(), log, m.note)
}

// noneYet reports whether nothing was redriven yet: the first redrive makes the topic.
func noneYet(ctx context.Context, client *kgo.Client, topic string) bool {
	details, err := kadm.NewClient(client).ListTopics(ctx, topic)
	return err == nil && errors.Is(details[topic].Err, kerr.UnknownTopicOrPartition)
}

// eachMark reads the marks of a topic, in order. Of one that was taken away it tells nil.
func eachMark(
	ctx context.Context, connection []kgo.Opt, log logreader.Log, note func(mark, *noted),
) error {
	return logreader.Read(ctx, connection, log, func(records []*kgo.Record) error {
		for _, r := range records {
			key, n, err := readMark(r)
			if err != nil {
				return err
			}
			note(key, n)
		}
		return nil
	})
}

// awaitStable returns when no transaction is open.
func awaitStable(ctx context.Context, admin *kadm.Client, topic string) error {
	ctx, cancel := context.WithTimeout(ctx, marksTimeout)
	defer cancel()
	open := func(err error) bool { return errors.Is(err, errOpen) || kerr.IsRetriable(err) }
	return pause.Repeat(ctx, retryMarks, open, func() error {
		stable, err := admin.ListCommittedOffsets(ctx, topic)
		if err == nil {
			err = stable.Error()
		}
		if err != nil {
			return err
		}
		ends, err := admin.ListEndOffsets(ctx, topic)
		if err == nil {
			err = ends.Error()
		}
		if err != nil {
			return err
		}
		for p, end := range ends[topic] {
			if stable[topic][p].Offset < end.Offset {
				return errOpen
			}
		}
		return nil
	})
}

func readMark(r *kgo.Record) (key mark, n *noted, err error) {
	name, err := hex.DecodeString(string(r.Key))
	if err != nil || len(name) != len(mark{}) {
		return key, nil, fmt.Errorf(
			"%s: the key %q is none of a mark: does another program write there?",
			placeOf(r.Topic, r.Partition, r.Offset), r.Key)
	}
	key = mark(name)
	if r.Value == nil {
		return key, nil, nil
	}
	n = new(noted)
	if err := json.Unmarshal(r.Value, n); err != nil {
		return key, nil, fmt.Errorf("%s: %w", placeOf(r.Topic, r.Partition, r.Offset), err)
	}
	return key, n, nil
}

func (m *marks) note(key mark, n *noted) {
	if n == nil {
		delete(m.times, key)
		return
	}
	m.times[key] = n.At
	if m.isOver(*n) {
		m.ended = append(m.ended, key)
	}
}

// isOver reports whether a mark can go: its letter is gone, and a copy of its record would be a new
// message.
func (m *marks) isOver(n noted) bool {
	if !n.At.Before(m.before) || n.Letter != m.log.Topic {
		return false
	}
	part, found := m.log.Partitions[n.Partition]
	return !found || n.TopicID != hex.EncodeToString(m.log.TopicID[:]) || n.Offset < part.Start
}

func (m *marks) has(key mark) bool {
	_, found := m.times[key]
	return found
}

// within reports whether a mark is younger than a ttl.
func (m *marks) within(key mark, ttl time.Duration) bool {
	at, found := m.times[key]
	return found && at.After(time.Now().Add(-ttl))
}

func (m *marks) add(l *letter, at time.Time) {
	m.times[l.mark] = at
	if l.content != (mark{}) {
		m.times[l.content] = at
	}
}

// records are those that mark a letter.
func (m *marks) records(l *letter, into string, at time.Time) []*kgo.Record {
	value, err := json.Marshal(noted{
		At: at.UTC(), Letter: l.topic, TopicID: hex.EncodeToString(l.place.TopicID[:]),
		Partition: l.place.Partition, Offset: l.place.Offset, Into: into,
		Record: placeOf(l.Record.Topic, l.Record.Partition, l.Record.Offset),
	})
	if err != nil {
		panic(err) // a struct of texts and numbers
	}
	all := []*kgo.Record{m.record(l.mark, value)}
	if l.content != (mark{}) {
		all = append(all, m.record(l.content, value))
	}
	return all
}

func (m *marks) record(key mark, value []byte) *kgo.Record {
	return &kgo.Record{Topic: m.topic, Partition: marksPartition,
		Key: []byte(hex.EncodeToString(key[:])), Value: value}
}

// mostErased are the marks that one transaction takes away.
const mostErased = 1000

// erasures are records that take away some of the marks that are over.
func (m *marks) erasures() (all []*kgo.Record) {
	n := min(len(m.ended), mostErased)
	for _, key := range m.ended[:n] {
		if at, found := m.times[key]; found && at.Before(m.before) { // not marked again since
			all = append(all, m.record(key, nil))
		}
	}
	m.ended = m.ended[n:]
	return all
}
