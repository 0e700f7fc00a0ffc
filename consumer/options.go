package consumer

import (
	"log/slog"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/internal/crashpoint"
)

// Options describe one member of a consumer group.
type Options struct {
	Connection []kgo.Opt // brokers, TLS, SASL, logging, client metrics
	Producer   []kgo.Opt // partitioner and limits of what the session produces

	Input         string
	ConsumerGroup string
	FenceTopic    string
	Outputs       []string // topics that the session produces to
	Member        string   // stable name: the transactional ID, and group.instance.id if Static
	Static        bool
	ServerSide    bool // KIP-848: the broker assigns partitions

	AcceptSkips    bool // do not return to the fences from offsets above them
	BatchRecords   int  // most records of one batch
	BatchBytes     int  // a batch that has as many bytes is full
	FetchBytes     int  // most bytes of one fetch from one broker
	SessionTimeout time.Duration

	Metrics *Metrics
	Logger  *slog.Logger
}

// written are all topics with records of the session's transactions.
func (o *Options) written() []string { return append(slices.Clone(o.Outputs), o.FenceTopic) }

// transactionTimeout bounds how long a dead member blocks its partitions and the readers of the
// output. A transaction begins at its first produced record, after the claims, so it is short.
const transactionTimeout = 15 * time.Second

// rebalanceTimeout is how long the group waits for a member that still works on a batch.
const rebalanceTimeout = 60 * time.Second

// client returns the options of the member's Kafka client.
func (o Options) client(m *member) []kgo.Opt {
	opts := append([]kgo.Opt{}, o.Connection...)
	opts = append(opts, o.Producer...)
	opts = append(opts, crashpoint.Hooks()...) // none but in test builds
	opts = append(opts,
		kgo.ConsumerGroup(o.ConsumerGroup),
		kgo.ConsumeTopics(o.Input),
		// A claim by a record of an aborted transaction would make the real one a duplicate.
		kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		// Markers are polled to be committed: an input that ends with one has no lag left.
		kgo.KeepControlRecords(),
		// Where the group starts is decided once, in PinStart. Without a commit there is nothing
		// to skip: a partition that was added later, or whose log was cut, begins at its start.
		kgo.ConsumeStartOffset(kgo.NewOffset().AtStart()),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.DisableAutoCommit(),
		kgo.SessionTimeout(o.SessionTimeout),
		kgo.HeartbeatInterval(o.SessionTimeout/5),
		kgo.RebalanceTimeout(rebalanceTimeout),
		kgo.FetchMaxBytes(int32(o.FetchBytes)),
		kgo.FetchMaxPartitionBytes(int32(o.FetchBytes)),
		kgo.FetchMaxWait(500*time.Millisecond),
		kgo.RequiredAcks(kgo.AllISRAcks()),
		kgo.MaxBufferedRecords(2*o.BatchRecords+1024),
		kgo.OnPartitionsAssigned(m.assign),
		kgo.OnPartitionsRevoked(m.revoke),
		kgo.OnPartitionsLost(m.lose),
	)
	if o.Static {
		opts = append(opts, kgo.InstanceID(o.Member))
	}
	if o.ServerSide {
		return append(opts, kgo.ServerSideBalancer(), kgo.Balancers(kgo.RangeBalancer()))
	}
	return append(opts, kgo.Balancers(kgo.CooperativeStickyBalancer()))
}
