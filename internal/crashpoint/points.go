package crashpoint

import (
	"slices"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// steps are the names that the product gives to At, in the order of a lane's work.
var steps = []string{
	"predecessor-fenced",  // exactly_once: what it had open is aborted, markers may be missing
	"predecessor-over",    // exactly_once: and these are written; the group is not joined
	"partitions-assigned", // the group's offsets are not read
	"partitions-begun",    // two clusters: they are, and nothing is fetched of the input
	"fences-unread",       // partitions are assigned and the first records fetched
	"fences-read",         //
	"batch-polled",        // nothing of it is claimed
	"bucket-claimed",      // cassandra: one more conditional batch is answered
	"bucket-renewed",      // cassandra: copies have renewed one more bucket's claims
	// postgres: one more batch is committed, and the others' owners are not read
	"rows-inserted",
	"blocks-appended",     // claim log: handed to the client, perhaps on their way
	"block-read-back",     // claim log: one more block is applied, and not answered
	"claims-written",      // embedded: visible to other calls, perhaps not durable
	"claims-synced",       // embedded: durable, not answered
	"batch-claimed",       // every claim is answered
	"batch-planned",       // before Begin
	"transaction-begun",   // exactly_once: nothing is produced in it
	"batch-begun",         // after Begin: with exactly_once the client holds the fences
	"record-produced",     // the client holds one more record
	"batch-produced",      // the client holds all of them; some may be sent
	"batch-forwarded",     // all are acknowledged
	"fences-acknowledged", // at_least_once: the offsets are not committed
	"transaction-ended",   // exactly_once: as the client reports it
	"batch-committed",     // before the next poll
	"hints-unsent",        // two clusters: the input's is not told what is committed
	"hints-answered",      // two clusters: and it is
}

// stepsOfRedrive are the names that a redrive gives to At, in the order of its work.
var stepsOfRedrive = []string{
	"letters-claimed",   // every claim is answered
	"redrive-begun",     // nothing is produced in the transaction
	"letters-forwarded", // letters and marks are acknowledged, and IDs released
	"redrive-ended",     // the transaction, as the client reports it
	"letters-committed", // before the next batch
}

// moments are three points of one request.
const (
	unsent   = "-unsent"   // before its first byte is written
	sent     = "-sent"     // the broker has it or will have it; its answer is not read
	answered = "-answered" // the answer is read, and nothing done with it
)

// requests are those whose moments are points.
var requests = map[int16]string{
	int16(kmsg.Produce):         "produce",
	int16(kmsg.OffsetCommit):    "offset-commit",
	int16(kmsg.LeaveGroup):      "leave-group",
	int16(kmsg.InitProducerID):  "init-producer-id",
	int16(kmsg.EndTxn):          "end-txn",
	int16(kmsg.TxnOffsetCommit): "txn-offset-commit",
}

// Points returns the names of all points of a pipeline.
func Points() []string {
	points := slices.Clone(steps)
	for _, request := range requests {
		points = append(points, request+unsent, request+sent, request+answered)
	}
	slices.Sort(points)
	return points
}
