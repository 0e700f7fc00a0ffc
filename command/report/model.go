package report

import "time"

// Report is what a topic holds. Its JSON is an interface: fields are added, not renamed;
// docs/report.md says what each means. Shares are parts of one, times are UTC, durations are in
// seconds.
type Report struct {
	Topic       string     `json:"topic"`
	GeneratedAt time.Time  `json:"generated_at"`
	Version     string     `json:"version"`
	MessageID   string     `json:"message_id"`
	Settings    Settings   `json:"settings"`
	Range       Range      `json:"range"`
	Clock       Clock      `json:"clock"`
	Totals      Totals     `json:"totals"`
	Missing     []Missing  `json:"missing"`
	Rate        Rate       `json:"rate"`
	Ages        Ages       `json:"ages"`
	TTL         TTL        `json:"ttl"`
	Run         Run        `json:"run"`
	Partitions  []Row      `json:"partitions"`
	ByHeader    *ByHeader  `json:"by_header"` // null without --by-header
	TopIDs      []TopID    `json:"top_ids"`
	Conflicts   []Conflict `json:"conflicts"`
	Differing   Differing  `json:"differing"`
	IDs         IDs        `json:"ids"`
}

// Settings are those of the pipeline that the report compares with.
type Settings struct {
	ConsumerGroup string `json:"consumer_group"`
	Output        string `json:"output"`
	Mode          string `json:"mode"`
	OnMissingID   string `json:"on_missing_id"`
	OnConflict    string `json:"on_conflict"`
	Store         string `json:"store"`
	Buckets       int    `json:"buckets"`
}

// Range is what was read.
type Range struct {
	Whole      bool             `json:"whole"` // all that the topic holds
	From       time.Time        `json:"from"`  // log time of the first record
	To         time.Time        `json:"to"`    // and of the last one
	Seconds    float64          `json:"seconds"`
	Partitions []PartitionRange `json:"partitions"`
}

// PartitionRange is offsets; the end is excluded.
type PartitionRange struct {
	Partition int32 `json:"partition"`
	Start     int64 `json:"start"`
	End       int64 `json:"end"`
}

// Kinds of timestamp.
const (
	ClockProducer = "producer" // CreateTime
	ClockBroker   = "broker"   // LogAppendTime
	ClockMixed    = "mixed"
)

// Clock says whose clock the times are from.
type Clock struct {
	Kind  string `json:"kind"`
	Ahead int64  `json:"ahead"` // records with a timestamp in the future
	// records with an earlier timestamp than one before them in the partition
	Backward        int64   `json:"backward"`
	BackwardSeconds float64 `json:"backward_seconds"`
}

// Totals count the records of the range.
type Totals struct {
	Records        int64   `json:"records"`
	Missing        int64   `json:"missing"`
	DistinctIDs    int64   `json:"distinct_ids"`
	Copies         int64   `json:"copies"` // duplicates and conflicts
	Duplicates     int64   `json:"duplicates"`
	Conflicts      int64   `json:"conflicts"`
	CopyShare      float64 `json:"copy_share"`
	ConflictingIDs int64   `json:"conflicting_ids"`
	// copies on another partition than the first record of their ID
	OtherPartition int64 `json:"other_partition"`
	// records in which no ID is looked for: only_if does not hold, or on_tombstone is about them
	Exempt     int64 `json:"exempt"`
	Tombstones int64 `json:"tombstones"`
}

// Missing counts records without an ID.
type Missing struct {
	Reason  string `json:"reason"`
	Records int64  `json:"records"`
}

// Rate is how fast records came.
type Rate struct {
	RecordsPerSecond float64 `json:"records_per_second"`
	PeakPerSecond    float64 `json:"peak_per_second"` // in the busiest bar
	IDsPerSecond     float64 `json:"ids_per_second"`  // new ones
	BarSeconds       float64 `json:"bar_seconds"`
	Bars             []Bar   `json:"bars"`
}

// Bar is a part of the range.
type Bar struct {
	At      time.Time `json:"at"`
	Records int64     `json:"records"`
	Copies  int64     `json:"copies"`
}

// Ages are those of copies, from the first record of their ID. Quantiles are rounded up; null means
// that there are no copies.
type Ages struct {
	P50     *float64 `json:"p50_seconds"`
	P90     *float64 `json:"p90_seconds"`
	P99     *float64 `json:"p99_seconds"`
	P999    *float64 `json:"p999_seconds"`
	Largest *float64 `json:"largest_seconds"`
	Rows    []AgeRow `json:"distribution"`
}

// AgeRow counts the ages from From up to To, which is excluded; null means without end.
type AgeRow struct {
	From   float64  `json:"from_seconds"`
	To     *float64 `json:"to_seconds"`
	Copies int64    `json:"copies"`
}

// TTL compares windows.
type TTL struct {
	Configured Window `json:"configured"`
	// empty without copies, and where the range does not bear it
	Advised []Advice `json:"advised"`
	Short   bool     `json:"short"` // the range is too short to advise all windows
	Curve   []Point  `json:"curve"`

	// Partitions of the input with records that the group has not committed and that are older than
	// half the ttl.
	OldUnread []int32 `json:"old_unread"`
}

// Window is a ttl with what it catches and costs.
type Window struct {
	TTL         string   `json:"ttl"`
	Seconds     float64  `json:"seconds"`
	Caught      int64    `json:"caught"`
	CaughtShare *float64 `json:"caught_share"` // of all copies; null without copies
	// claims that live at a time: new IDs per second times ttl; null if the range is too short for
	// a rate
	Rows          *float64 `json:"rows"`
	Bytes         *float64 `json:"bytes"` // of the rows that must be kept, in each replica
	RowsPerBucket *float64 `json:"rows_per_bucket"`
}

// Advice is the shortest window that catches a share of the copies.
type Advice struct {
	Share float64 `json:"share"`
	Window
}

// Point is one of the curve of windows.
type Point struct {
	Seconds     float64 `json:"seconds"`
	CaughtShare float64 `json:"caught_share"`
}

// Run is what a pipeline with the configured settings would have done that read each record when it
// came.
type Run struct {
	Verdicts []Count `json:"verdicts"`
	Outcomes []Count `json:"outcomes"`
}

// Count is a number of records.
type Count struct {
	Name    string `json:"name"`
	Records int64  `json:"records"`
}

// Row counts a part of the records.
type Row struct {
	Name       string  `json:"name"`
	Records    int64   `json:"records"`
	Missing    int64   `json:"missing"`
	Duplicates int64   `json:"duplicates"`
	Conflicts  int64   `json:"conflicts"`
	CopyShare  float64 `json:"copy_share"`
}

// ByHeader counts by the values of a header, those with the most copies first.
type ByHeader struct {
	Header string `json:"header"`
	Values []Row  `json:"values"`
}

// TopID is an ID that repeats.
type TopID struct {
	ID      string    `json:"id"` // in hexadecimal digits if it is not text
	Records int64     `json:"records"`
	First   time.Time `json:"first"`
	Last    time.Time `json:"last"`
}

// Conflict is an ID with two contents.
type Conflict struct {
	ID    string `json:"id"`
	First Place  `json:"first"`
	Other Place  `json:"other"`
}

// Place is where a record is.
type Place struct {
	Partition   int32     `json:"partition"`
	Offset      int64     `json:"offset"`
	At          time.Time `json:"at"`
	Fingerprint string    `json:"fingerprint"`
}

// Differing says in which fields copies with other content differ, in a sample of the IDs.
type Differing struct {
	Share    float64      `json:"sample_share"` // of the IDs
	Compared int64        `json:"compared"`     // conflicts of the sample
	Whole    int64        `json:"whole"`        // of these, in the key, or values without fields
	Fields   []FieldCount `json:"fields"`       // those in which most conflicts differ
	Sets     []FieldSet   `json:"sets"`         // those in which most conflicts differ in no other
}

// FieldCount counts the conflicts that differ in a field.
type FieldCount struct {
	Field     string `json:"field"`
	Conflicts int64  `json:"conflicts"`
}

// FieldSet counts the conflicts that differ in these fields and in no other.
type FieldSet struct {
	Fields    []string `json:"fields"`
	Conflicts int64    `json:"conflicts"`
}

// Spellings counts the IDs that differ only in what message_id.normalize takes away.
type Spellings struct {
	Share   float64 `json:"sample_share"` // of the IDs
	Sampled int64   `json:"sampled"`      // IDs, however they are spelled
	Several int64   `json:"several"`      // of these, with more than one spelling
}

// IDs says what message IDs look like.
type IDs struct {
	Kinds     []Kind  `json:"kinds"`
	MeanBytes float64 `json:"mean_bytes"`
	// Kendall's tau of the order of bytes and that of time; null with too few IDs
	Correlation *float64 `json:"time_correlation"`
	TimeOrdered *bool    `json:"time_ordered"`
	BytesPerRow float64  `json:"bytes_per_row"` // estimate for the configured store
	// how long a claim stays on the disk behind its end, at least
	Grace     float64   `json:"grace_seconds"`
	Spellings Spellings `json:"spellings"`
	// records with an ID whose value begins as JSON and is not whole
	CutOff int64 `json:"cut_off"`
}

// Kind is a form of IDs and its share of a sample.
type Kind struct {
	Kind  string  `json:"kind"`
	Share float64 `json:"share"`
}
