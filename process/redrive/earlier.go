package redrive

import (
	"context"
	"time"

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
	if noneYet(ctx, client, topic) {
		return nil, nil
	}
	log, err := logreader.Describe(ctx, client, topic, logreader.Bounds{MaxRecords: most})
	if err != nil {
		return nil, err
	}
	sent := make(Earlier)
	return sent, eachMark(ctx, connection, log, func(key mark, n *noted) {
		if n == nil {
			delete(sent, key)
		} else {
			sent[key] = Sent{At: n.At, Into: n.Into}
		}
	})
}

// Of tells whether the letter of a record was redriven. The record is as it was on the input.
func (e Earlier) Of(record *kgo.Record) (Sent, bool) {
	sent, was := e[markOf(record)]
	return sent, was
}
