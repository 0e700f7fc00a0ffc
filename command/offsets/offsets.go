// Package offsets translates a consumer group's committed offsets on the input of a pipeline into
// those on its clean topic, and back. Records keep their partition, and the claim for a message ID
// tells which record of the input owns it. So the pipeline must be one that lets no copy through.
//
// The owner of an ID need not be the record that was forwarded, and records need not stand on the
// clean topic in the order of the input:
//
//   - an ID that came again after its ttl is owned by the later record;
//   - where an owner was gone from the input, a later copy stands for it (verdict inherited);
//   - a dead letter that was redriven stands behind records that follow it on the input;
//   - claims end, and not each record has an ID.
//
// So no place follows from the owners around it. Clean and Input read all records in question, and
// each of them speaks for itself only. What keeps that short is time: a record keeps its timestamp,
// see times.
package offsets

import (
	"context"
	"errors"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/connect/logreader"
	"github.com/kdedup/kdedup/dedup"
)

// Judge tells who owns the IDs of a batch, and claims nothing; dedup.Deduper has the contract.
type Judge interface {
	Judge(ctx context.Context, messages []dedup.Message) ([]dedup.Judgement, error)
}

// Options say what is compared, and who knows the owners.
type Options struct {
	Connection []kgo.Opt // to the brokers of Input: addresses, TLS, SASL, logging
	// CleanConnection is to those of Clean, where they are of another cluster; else nil.
	CleanConnection []kgo.Opt
	// Input was described after Clean: what stands on Clean comes from records of it.
	Input logreader.Log
	// Clean was described before the group's offsets were fetched: what is forwarded later lies
	// behind its ends.
	Clean logreader.Log
	Judge Judge
	// Originals says that the records of the input can be read. They tell whether an owner is there
	// and has the same content, and from what time on. Without them all of the clean topic is read,
	// and an owner is believed only where it fits those before it.
	Originals bool
	// Handled are the offsets by partition of the input that the pipeline had committed before
	// Clean was described: what is forwarded later comes from there or behind it. Input needs them;
	// nil if they are not known.
	Handled map[int32]int64
}

// cleanConnection is to the brokers that have the clean topic.
func (o Options) cleanConnection() []kgo.Opt {
	if o.CleanConnection != nil {
		return o.CleanConnection
	}
	return o.Connection
}

// Place is where a consumer goes on in a partition.
type Place struct {
	Offset int64
	// Again is how many records of the clean topic that the consumer may have had come again, at
	// most.
	Again int64
}

// errNoTopicIDs refuses brokers on which an owner may be a record of any topic.
var errNoTopicIDs = errors.New("the brokers have no topic IDs, so that nobody can tell which " +
	"topic's record a claim belongs to; this needs Kafka 2.8 or later")
