package config

// Places of a message ID.
const (
	FromHeader     = "header"
	FromKey        = "key"
	FromJSON       = "json"
	FromAvro       = "avro"
	FromProtobuf   = "protobuf"
	FromJSONSchema = "json_schema"
	FromDebezium   = "debezium"

	FromMaxwell     = "maxwell"
	FromCanal       = "canal_json"
	FromTiCDC       = "ticdc"
	FromCockroachDB = "cockroachdb"
	FromMongoDB     = "mongodb"
	FromDMS         = "dms"

	FromValueHash = "value_hash"
	FromComposite = "composite"
	FromFirstOf   = "first_of"
)

// WholePath is the path of a value or a key that is one scalar: of Avro, or a wrapper of Protobuf.
const WholePath = "$"

// Occurrences of a header.
const (
	OccurrenceFirst = "first"
	OccurrenceLast  = "last"
)

// Cases of a header's name.
const (
	HeaderExact = "exact"
	HeaderAny   = "any"
)

// Steps of a normalization.
const (
	NormalizeTrim    = "trim"
	NormalizeUnquote = "unquote"
	NormalizeLower   = "lower"
	NormalizeUUID    = "uuid"
	NormalizePayload = "payload"
)

// Parts of a record that may be a JSON document.
const (
	PartValue = "value"
	PartKey   = "key"
)

// MessageID says where a record carries its ID; every entry needs it. Records with equal IDs in one
// scope are copies of one message. A null or empty ID is a missing one, see `on_missing_id`. This
// section cannot be changed once a scope has claims. `docs/message-ids.md` has the details.
type MessageID struct {
	// A kind of producer, with a page in docs/recipes: `debezium`, `debezium_outbox`, `maxwell`,
	// `canal`, `ticdc`, `cockroachdb`, `mongodb`, `dms`, `cloudevents`, `stripe`, `shopify`,
	// `github`, `spring`, `segment` or `snowplow`. It stands for `from` and what belongs to it, for
	// some also for `fingerprint` and `on_tombstone`; `kdedup config print` shows them. What the
	// entry sets itself wins, every list as a whole. `from` and `parts` are refused beside it.
	Preset string `mapstructure:"preset"`
	// Required, or set by `preset`. `header`: the header `name`. `key`: the record's key. `json`:
	// the field `path` of a JSON document, also behind what a registry's serializer puts before it.
	// `avro`, `protobuf`, `json_schema`: the field `path` of a record behind the ID of its schema;
	// the first two need `schema_registry`. `debezium`, `maxwell`, `canal_json`, `ticdc`,
	// `cockroachdb`, `mongodb`, `dms`: a change, as these write it. `value_hash`: SHA-256 of the
	// value. `composite`: all of `parts` together. `first_of`: the first of `parts` that is not
	// missing.
	From string `mapstructure:"from"`
	// Name of the header. Required with `from: header`, refused otherwise.
	Name string `mapstructure:"name"`
	// With `from: header`, whether capital and small letters of ASCII in the name differ: `exact`
	// or `any`.
	//
	// Default: `exact`.
	HeaderCase string `mapstructure:"header_case"`
	// With `from: header`, which one counts of several: `first`, what the producer set, or `last`,
	// what was appended behind it.
	//
	// Default: `first`.
	Occurrence string `mapstructure:"occurrence"`
	// Place of the field, for example `order.id`, `items[0].id`, or `payload|json.id`: a field of
	// the document that lies as text in the field `payload`. A backslash makes `\`, `.`, `[`, `]`,
	// `|` and `$` part of a name: `order\.id`. `$` is the whole of a value or a key that is one
	// scalar: with `avro` a string, say, with `protobuf` a wrapper such as
	// `google.protobuf.StringValue`. Required with `from: json`, `avro`, `protobuf` and
	// `json_schema`, refused otherwise.
	Path string `mapstructure:"path"`
	// With places that have a `path`, what of the record has the field: `value` or `key`.
	//
	// Default: `value`.
	Part string `mapstructure:"part"`
	// With `from: avro`, `protobuf` and `json_schema`, the subject whose newest schema `kdedup
	// validate` looks at. Empty: the input topic with `-value` or `-key` behind it.
	Subject string `mapstructure:"subject"`
	// What is done to the bytes of a header, a key or a field, in the given order, at most 8 steps:
	// `trim` (white space of ASCII), `payload` (of Kafka Connect's `schema` and `payload`),
	// `unquote` (a JSON string), `lower` (letters of ASCII), `uuid` (the usual spelling). An ID of
	// which nothing is left is missing. Refused with other places; `parts` have their own.
	Normalize []string `mapstructure:"normalize"`
	// With `from: value_hash`, fields of a value that do not count, as in `fingerprint.ignore`.
	Ignore []string `mapstructure:"ignore"`
	// With `from: value_hash`, the only fields of a value that count, as in `fingerprint.only`.
	Only []string `mapstructure:"only"`
	// With `ignore` or `only`, and with `from: debezium` and `cockroachdb`, what the value is:
	// `json`, `avro` or `protobuf`, as for `fingerprint.format`.
	//
	// Default: `json`.
	Format string `mapstructure:"format"`
	// With `from: debezium`, whether a change is the same whichever connector sends it:
	// `source.name`, the connector's `topic.prefix`, does not count.
	AnySource bool `mapstructure:"any_source"`
	// Two or more places, each with `from` and so on, in an order that matters. Those of a
	// `composite` are neither `composite` nor `first_of`, and if one is missing, the ID is. Those
	// of a `first_of` may be `composite`. Required with these two, refused otherwise.
	Parts []MessageID `mapstructure:"parts"`
	// A secret of at least 16 bytes, for IDs that are personal data: kdedup then stores only the
	// HMAC-SHA-256 of each ID with this key. Keep the key: without it no ID can be looked up, and
	// another one is refused as another `message_id` is. Not for `parts`.
	HMACKey Secret `mapstructure:"hmac_key"`
}
