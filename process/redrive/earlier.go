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
)

// Earlier are letters that were redriven, by the marks on their topic.
type Earlier map[mark]Sent

// Sent is when a letter was redriven, and to which topic.
type Sent struct {
	At   time.Time
	Into string
}

// ReadEarlier reads the newest marks, about as many as most: enough for a look, while a redrive
// reads them all. It takes no part in the transactions of redrives.
func ReadEarlier(
	ctx context.Context, client *kgo.Client, connection []kgo.Opt, topic string, most int64,
) (Earlier, error) {
	details, err := kadm.NewClient(client).ListTopics(ctx, topic)
	if err == nil && errors.Is(details[topic].Err, kerr.UnknownTopicOrPartition) {
		return nil, nil // nothing was redriven yet
	}
	log, err := logreader.Describe(ctx, client, topic, logreader.Bounds{MaxRecords: most})
	if err != nil {
		return nil, err
	}
	sent := make(Earlier)
	return sent, logreader.Read(ctx, connection, log, func(records []*kgo.Record) error {
		for _, record := range records {
			if err := sent.read(record); err != nil {
				return err
			}
		}
		return nil
	})
}

func (e Earlier) read(r *kgo.Record) error {
	name, err := hex.DecodeString(string(r.Key))
	if err != nil || len(name) != len(mark{}) {
		return errNoMark(r)
	}
	if r.Value == nil {
		delete(e, mark(name))
		return nil
	}
	var n noted
	if err := json.Unmarshal(r.Value, &n); err != nil {
		return fmt.Errorf("%s: %w", placeOf(r.Topic, r.Partition, r.Offset), err)
	}
	e[mark(name)] = Sent{At: n.At, Into: n.Into}
	return nil
}

// Of tells whether the letter of a record was redriven. The record is as it was on the input.
func (e Earlier) Of(record *kgo.Record) (Sent, bool) {
	sent, was := e[markOf(record)]
	return sent, was
}
