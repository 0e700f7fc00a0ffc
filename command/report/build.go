package report

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/connect/logreader"
	"github.com/kdedup/kdedup/dedup"
)

// Options say what is read and what the answer is compared with.
type Options struct {
	Connection []kgo.Opt // brokers, TLS, SASL, logging
	Log        logreader.Log
	Bounded    bool // only a part of what the topic holds is read
	Extractor  dedup.Extractor
	Header     string // name of a header whose values are told apart; may be empty
	Pipeline   Pipeline
	// Outcome names what the pipeline does with a record of this verdict.
	Outcome func(dedup.Verdict) string
	// Document reads a value as JSON, for the fields in which conflicts differ; nil: none is read.
	Document func(context.Context, *kgo.Record) ([]byte, bool, error)
	Version  string
	HideIDs  bool                    // show hashes in place of message IDs
	Progress func(done, total int64) // offsets; may be nil
	Now      func() time.Time        // nil: time.Now
	TempDir  string                  // for what does not fit into memory; empty: the system's
	// Read hands over the records in place of Kafka, a part of one partition at a time, in its
	// order; nil reads the log.
	Read   func(each func([]*kgo.Record) error) error
	memory int // bytes of the sorter; 0: sortBytes
}

// Pipeline is what the configuration says about the topic.
type Pipeline struct {
	ConsumerGroup string
	Output        string
	Mode          string
	OnMissingID   string
	OnConflict    string
	TTL           time.Duration
	Sliding       bool   // the ttl counts from the last copy
	Store         string // its type
	Buckets       int    // 0: the store has none
	Disk          Disk
	// partitions with records that the group has not committed and that are older than half the ttl
	OldUnread []int32
}

// Disk is what claims take on the disk of the store, or of each replica.
type Disk struct {
	RowBytes func(idBytes int) int // of a claim; nil: not known
	Grace    time.Duration         // how long a claim stays behind its end, at least
}

func (d Disk) rowBytes(idBytes float64) float64 {
	if d.RowBytes == nil {
		return 0
	}
	return float64(d.RowBytes(int(math.Round(idBytes))))
}

type visitor = func([]*kgo.Record) error

// Build reads the log and reports on it. Nothing is changed on the servers; temporary files are
// removed when it returns.
func Build(ctx context.Context, o Options) (_ *Report, err error) {
	o = o.withDefaults(ctx)
	sorter := newSorter(o.TempDir, o.memory)
	defer func() {
		if closing := sorter.close(); err == nil {
			err = closing
		}
	}()
	c := newCollector(o, sorter)
	if err := o.Read(func(records []*kgo.Record) error { return c.add(ctx, records) }); err != nil {
		return nil, err
	}
	a := newAnalysis(o.Pipeline.TTL, o.Pipeline.Sliding, c)
	if err := sorter.each(func(e entry) error {
		a.add(e)
		return context.Cause(ctx) // nil while ctx lives
	}); err != nil {
		return nil, fmt.Errorf("sort the ids: %w", err)
	}
	a.endGroup()
	return o.compose(c, a), nil
}

func (o Options) withDefaults(ctx context.Context) Options {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.memory == 0 {
		o.memory = sortBytes
	}
	if o.Progress == nil {
		o.Progress = func(int64, int64) {}
	}
	if o.Read == nil {
		o.Read = func(each visitor) error {
			return logreader.Read(ctx, o.Connection, o.Log, each)
		}
	}
	return o
}
