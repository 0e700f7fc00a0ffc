package redrive

import (
	"context"
	"log/slog"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/connect/logreader"
	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/forwarder"
)

// Into says where letters go.
type Into uint8

const (
	Clean Into = iota // the clean topic, with a claim
	Input             // the input, where the pipeline judges them
)

// Store is the part of a store that redriving needs; dedup.Store has the contract.
type Store interface {
	dedup.Claimer
	Lookup(ctx context.Context, scope dedup.Scope, id dedup.ID) (dedup.Answer, error)
	Release(ctx context.Context, scope dedup.Scope, id dedup.ID) error
}

// Options say what is redriven, and how.
type Options struct {
	// Connection makes the options of one client: brokers, TLS, SASL, logging.
	Connection func() []kgo.Opt
	Letters    logreader.Log // of the dead-letter or the duplicates topic: all that it holds
	Select     Selection
	Limit      int64 // of letters that are redriven; 0: none
	DryRun     bool  // nothing is claimed, released or sent

	Into      Into
	Input     string   // of the pipeline; letters of other ones are left alone
	InputID   [16]byte //
	Target    Target
	Now       bool // send with the present time, not with that of the record
	Conflicts bool // into Clean: also what is in conflict with the owner of its ID
	// MaxRedrives bounds how often one record is sent into the Input.
	MaxRedrives int

	Store     Store
	Scope     dedup.Scope
	Extractor dedup.Extractor
	// Passes tells what the pipeline lets through to the clean topic.
	Passes func(dedup.Verdict) bool
	// Handled tells whether the pipeline has committed the record that claimed its ID then: it
	// will not come again.
	Handled func(owner dedup.Coordinates, claimed time.Time) bool

	Marks              string // the topic of the marks
	TransactionalID    string
	TransactionTimeout time.Duration
	BatchRecords       int // in one transaction
	BatchBytes         int

	Progress func(done, total int64) // offsets; may be nil
	Logger   *slog.Logger
}

// Target is the topic that letters go to.
type Target struct {
	forwarder.Topics               // of which Output is the target
	Partitions       int           //
	Retention        time.Duration // older records may be gone before anybody reads them; 0: never
}
