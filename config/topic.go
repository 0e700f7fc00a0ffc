package config

import "time"

// The values of Topic's settings have types, so that none is taken for another's. Each setting's
// manual says what they mean.
type (
	Delivery      string
	Mode          string
	Action        string // of the settings that begin with on_
	TTLFrom       string
	Partitioner   string
	Compression   string
	Start         string
	GroupProtocol string
	Documents     string
)

const (
	DeliveryExactlyOnce Delivery = "exactly_once"
	DeliveryAtLeastOnce Delivery = "at_least_once"

	ModeEnforce  Mode = "enforce"
	ModeAnnotate Mode = "annotate"
	ModeObserve  Mode = "observe"

	ActionDeadLetter Action = "dead_letter"
	ActionForward    Action = "forward"
	ActionDrop       Action = "drop"
	ActionFail       Action = "fail"
	ActionStop       Action = "stop"
	ActionBlock      Action = "block"
	ActionReread     Action = "reread"
	ActionAccept     Action = "accept"
	ActionAsAny      Action = "as_any"

	TTLFromFirst TTLFrom = "first"
	TTLFromLast  TTLFrom = "last"

	PartitionerPreserve Partitioner = "preserve"
	PartitionerByKey    Partitioner = "by_key"

	CompressionInput  Compression = "input"
	CompressionNone   Compression = "none"
	CompressionGzip   Compression = "gzip"
	CompressionSnappy Compression = "snappy"
	CompressionLZ4    Compression = "lz4"
	CompressionZstd   Compression = "zstd"

	DocumentsAny   Documents = "any"
	DocumentsWhole Documents = "whole"

	StartEarliest Start = "earliest"
	StartLatest   Start = "latest"

	ProtocolClassic  GroupProtocol = "classic"
	ProtocolConsumer GroupProtocol = "consumer"
)

// Topic is one pipeline: it reads an input topic and writes a clean one. All its topics must exist;
// `kdedup setup` makes those that are missing, except the input. No two of them may be the same,
// and none may lead back to an input that feeds it.
type Topic struct {
	// Required. Topic to read. Each entry of a file reads another one. `input: {pattern: …}` reads
	// many topics, see `input.pattern`.
	Input string `mapstructure:"input"`
	// A regular expression in the place of a name: `input: {pattern: 'tenant-.*\.orders'}`. Each
	// topic whose whole name it matches gets a pipeline of its own, in which its name stands for
	// every `{topic}`. `{topic}` must stand in `output`, `consumer_group`, and the other topics
	// that are set, and may stand in `scope` and `scope_group`.
	Pattern string `mapstructure:"input.pattern"`
	// Required. Topic for the clean records, byte for byte as they were read.
	Output string `mapstructure:"output"`
	// Required. Consumer group of this pipeline, different for every entry. All processes that
	// share the work use the same group.
	ConsumerGroup string `mapstructure:"consumer_group"`
	// `exactly_once`: a batch's records and its offsets are committed in one transaction; read the
	// output with `isolation.level=read_committed`. `at_least_once`: records first, offsets after,
	// without transactions; a crash between the two forwards that batch again.
	Delivery Delivery `mapstructure:"delivery"`
	// Group members in this process, 1 to 64. Each has memory for a batch of its own, and two or
	// three connections to the brokers. Lanes beyond the number of partitions stay idle. With a
	// pattern the default is 1, for each topic.
	Lanes int `mapstructure:"lanes"`
	// Required. Where a record carries its ID.
	MessageID MessageID `mapstructure:"message_id"`
	// Full name of the Avro record or the Protobuf message that every value is, for values that
	// name no schema: `shop.Order`, from `schema_registry.schemas`. In Avro only for a topic whose
	// schema never changes: with another version than theirs kdedup would read another field.
	Schema string `mapstructure:"schema"`
	// Which records have a message ID; all others are forwarded as they are.
	OnlyIf Condition `mapstructure:"only_if"`
	// What of records with equal IDs makes them copies of each other.
	Fingerprint Fingerprint `mapstructure:"fingerprint"`
	// Namespace of the message IDs: claims are stored under (scope_group, scope). Pipelines that
	// share both share their claims; they must agree on `message_id`, `fingerprint`, `ttl`,
	// `ttl_from` and `buckets`.
	//
	// Default: the input topic, `{topic}` with a pattern.
	Scope string `mapstructure:"scope"`
	// The other half of the namespace. Set it to share claims between pipelines, or to keep them
	// when a consumer group is renamed.
	//
	// Default: the consumer group.
	ScopeGroup string `mapstructure:"scope_group"`
	// How long a claim holds. A copy that comes later is a new message. Whole seconds, from `1s` to
	// 20 years (630720000 s). The store holds about rate x ttl claims. A change applies to new
	// claims.
	TTL time.Duration `mapstructure:"ttl"`
	// Where that time begins. `first`: at the first copy, however many come. `last`: at the last
	// one; a claim then ends between nine tenths of the ttl and all of it after the last copy. The
	// record that owns the ID is no copy. A change applies at once.
	TTLFrom TTLFrom `mapstructure:"ttl_from"`
	// Partitions that the scope's claims are spread over in Cassandra, 1 to 1000000. Claims of one
	// bucket share a request: fewer are faster, and each grows to rate x ttl / buckets rows. It
	// cannot be changed once the scope has claims: `kdedup migrate` moves them. The other stores
	// only record it.
	Buckets int `mapstructure:"buckets"`
	// `enforce`: act on the verdicts. `annotate`: forward every record, with its verdict in a
	// header. `observe`: forward every record as it is and only count. All three claim.
	Mode Mode `mapstructure:"mode"`
	// A record without an ID: `dead_letter`, `forward`, `drop`, or `fail`: the process ends with
	// exit code 1, and its error names the record.
	OnMissingID Action `mapstructure:"on_missing_id"`
	// What a value must be for its record to have a message ID: `any`, or `whole`, one JSON
	// document from its beginning to its end. A value that was cut off then has none
	// (`unparsable`); else the copy that is whole is in conflict with it. A tombstone is no
	// document.
	Documents Documents `mapstructure:"documents"`
	// A record without a value, with which a compacted topic forgets a key: verdict `tombstone`.
	// `as_any`: as any other record, so it has no ID with `from: json`, and is in conflict with the
	// record that it is to delete with `from: key`. `forward`: in its place, its copies too.
	// `dead_letter`, `drop`: not to the clean topic.
	OnTombstone Action `mapstructure:"on_tombstone"`
	// A record with a known ID but another key or value than its owner's: `drop`, `forward` or
	// `dead_letter`.
	OnConflict Action `mapstructure:"on_conflict"`
	// A record that this group already forwarded and committed, read again after a rewind of the
	// offsets: `drop` or `forward`.
	OnReplay Action `mapstructure:"on_replay"`
	// A record that the clean topic refuses from any producer: too large, with a timestamp that it
	// does not admit, without a key where it is compacted. `dead_letter`: in a form that
	// `dead_letter_topic` takes. `drop`: nowhere. In both cases its ID stays claimed. `stop`:
	// kdedup holds its partition until the topic takes the record or you change this setting, as it
	// does where it can write no dead letter.
	OnUndeliverable Action `mapstructure:"on_undeliverable"`
	// What to do when the group's offsets lie above what kdedup handled, because somebody moved
	// them forward, they had expired, or a broker lost a transaction's markers. `reread`: go on
	// where the last batch ended, so that nothing is lost. `accept`: leave out the records in
	// between; kdedup may drop copies of them that come later.
	OnSkip Action `mapstructure:"on_skip"`
	// `block`: wait until the store answers; the lag grows and nothing is lost. `forward`: after
	// `outage_grace` forward records without a claim, counted as passed_through; duplicates among
	// them get through.
	OnStoreOutage Action `mapstructure:"on_store_outage"`
	// With `on_store_outage: forward`, how long the store may be silent before records pass
	// unclaimed, at least `100ms`.
	OutageGrace time.Duration `mapstructure:"outage_grace"`
	// Topic that gets the dropped duplicates. Empty: they are only counted.
	DuplicatesTopic string `mapstructure:"duplicates_topic"`
	// Topic for records that have no ID, that are in conflict, or that the clean topic refuses.
	// Required when `on_missing_id`, `on_tombstone` or `on_conflict` is `dead_letter`.
	DeadLetterTopic string `mapstructure:"dead_letter_topic"`
	// Compacted topic that tells which records were forwarded and committed, with as many
	// partitions as the input, for this pipeline alone. Where topics cannot be compacted it keeps
	// everything.
	//
	// Default: `<consumer_group>.fence`.
	FenceTopic string `mapstructure:"fence_topic"`
	// `preserve`: a record keeps its partition number, and the order within it; partitions of the
	// input that the output lacks wait. `by_key`: the partition follows from the key, as with
	// Kafka's own producer.
	Partitioner Partitioner `mapstructure:"partitioner"`
	// How kdedup compresses what it writes. `input`: as the input's batches are, so that who could
	// read the input can read the clean topic. Else `none`, `gzip`, `snappy`, `lz4` or `zstd`.
	// Azure Event Hubs takes `none` and `gzip` only.
	Compression Compression `mapstructure:"compression"`
	// `earliest` or `latest`. With `latest`, kdedup never reads the records from before the first
	// start. Partitions and topics that come later, or are made again, are read from their
	// beginning.
	Start Start `mapstructure:"start"`
	// Most records in one batch, 1 to 100000. A batch is claimed together and committed together.
	// Slow brokers get smaller ones.
	BatchRecords int `mapstructure:"batch_records"`
	// Size with which a batch is full, `64KiB` to `1GiB`, with all that a record takes. The memory
	// of a process grows with `lanes` x `batch_bytes`, or what `batch_records` take of it.
	BatchBytes Bytes `mapstructure:"batch_bytes"`
	// Most bytes of one fetch from one broker, `64KiB` to `1GiB`. More bytes are faster only with a
	// distant broker.
	FetchBytes Bytes `mapstructure:"fetch_bytes"`
	// Most bytes that one compressed batch of the input may unpack to, `1MiB` to `1GiB`. kdedup
	// holds the partition of a larger one until you raise this. docs/kubernetes.md tells what it
	// means for memory.
	UnpackedBytes Bytes `mapstructure:"unpacked_bytes"`
	// How long a process may be silent before its partitions go to others, `6s` to `30m`; the
	// broker limits it further. No effect with `group_protocol: consumer`, where the broker
	// decides.
	SessionTimeout time.Duration `mapstructure:"session_timeout"`
	// With `delivery: exactly_once`, the time after which the broker aborts a batch's transaction,
	// `5s` to `15m`; `transaction.max.timeout.ms` limits it further. Readers with `read_committed`
	// wait as long for a process that was killed. Raise it only where a quota lets no record
	// through in that time.
	TransactionTimeout time.Duration `mapstructure:"transaction_timeout"`
	// `classic`: cooperative rebalances led by a member. `consumer`: rebalances led by the broker
	// (KIP-848); needs Kafka 4.3 or later.
	GroupProtocol GroupProtocol `mapstructure:"group_protocol"`
	// Whether `output` may be compacted. A compacted topic keeps only the last message of each key,
	// and refuses records without a key.
	AllowCompactedOutput bool `mapstructure:"allow_compacted_output"`
	// Whether lanes are static members, with the group instance ID
	// `<consumer_group>-<instance>-<lane>`. A restart within `session_timeout` then moves no
	// partition; after a stop for good the partitions wait that long.
	StaticMember bool `mapstructure:"static_membership"`
	// With `input.pattern`: whether `kdedup run` makes the topics that a new input needs, and with
	// `partitioner: preserve` adds partitions to them. With `false` a new input waits for `kdedup
	// setup`.
	AutoSetup bool `mapstructure:"auto_setup"`

	// Origin is set by Expand.
	Origin Origin `mapstructure:"-" json:"-"`
}

// Sliding reports whether the ttl of a claim counts from the last copy.
func (t Topic) Sliding() bool { return t.TTLFrom == TTLFromLast }
