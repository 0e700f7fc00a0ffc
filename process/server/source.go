package server

import (
	"context"
	"time"
)

// Source tells the server about the process that it shows.
type Source interface {
	// Snapshot reads the present state from memory and returns at once. The server calls it from
	// one goroutine, about every two seconds.
	Snapshot() Snapshot
	// Settings lists the configuration in force. It may be called by several goroutines.
	Settings() []Setting
	// LookUp tells what the store knows about a message ID; topic is an input topic. It may be
	// called by several goroutines, and must return when ctx ends.
	LookUp(ctx context.Context, topic string, id []byte) (Finding, error)
	// Change releases or claims a message ID, and says what was done. As LookUp.
	Change(ctx context.Context, change Change, topic string, id []byte) (said string, err error)
}

// Change is what may be done to a message ID.
type Change string

// The changes, as in the addresses of the API.
const (
	Release Change = "release"
	Claim   Change = "claim"
)

// Snapshot is the state of a process. Counters grow from the start of the process; what the page
// shows per second is made from two snapshots.
type Snapshot struct {
	Configured time.Time  // since when the configuration is in force
	Pipelines  []Pipeline // the same ones, in the same order, as long as Configured stays
	Store      Store
	Clusters   []Cluster // of Kafka, where there are two; else none
	API        *API      // nil: the process answers no API
	Events     []Event   // the latest one first
}

// Cluster is one of two Kafka clusters, and what lies on it.
type Cluster struct {
	Name      string   `json:"name"` // input or output
	Addresses []string `json:"addresses"`
	ID        string   `json:"cluster_id"` // empty until it has answered
	Topics    []string `json:"topics"`
}

// The clusters.
const (
	ClusterInput  = "input"
	ClusterOutput = "output"
)

// ClusterCheck is the name of the check that asks a cluster, from which the page takes its health.
func ClusterCheck(name string) string { return "cluster of the " + name }

// API is what programs in other languages ask of the process.
type API struct {
	Address  string // a URL, or what it shall listen on while it does not answer
	Waiting  string // why it does not answer; empty while it does
	Keys     string // where idempotency keys are; empty: nowhere
	UnderWay int    // requests
	Scopes   []APIScope
	Callers  []APICaller // empty: it tells none apart
	Answers  []Count     // by code
	Refused  []Count     // by reason, before a method saw them
}

// APIScope is a namespace of message IDs and keys.
type APIScope struct {
	Name     string
	Verdicts []Count
	Begins   []Count // by outcome
	InHand   int     // keys that callers hold
}

// APICaller is a program that the API knows. Nothing here is a secret.
type APICaller struct {
	Name     string
	Proof    string // token, certificate or both
	Scopes   []string
	Requests float64
}

// Pipeline is one entry of the configuration's topics.
type Pipeline struct {
	Input         string `json:"input"`
	Output        string `json:"output"`
	ConsumerGroup string `json:"consumer_group"`
	Delivery      string `json:"delivery"`
	Mode          string `json:"mode"`
	Failures      uint64 `json:"failures"` // of all lanes, since the start

	TTL        time.Duration `json:"-"`
	Lanes      []Lane        `json:"-"`
	Partitions []Partition   `json:"partitions"` // of this process
	Outcomes   []Count       `json:"-"`          // of records; their sum is what was consumed
	Verdicts   []Count       `json:"-"`
	Batches    []Count       `json:"-"`
	// records that the clean topic did not take; among the outcomes they are dead_lettered or
	// dropped
	Undeliverable float64       `json:"-"`
	Dropped       []DroppedCopy `json:"-"` // the last ones, the latest one first
}

// The states of a lane.
const (
	LaneJoining = "joining" // is not a member of the consumer group yet
	LaneRunning = "running"
	LaneBlocked = "blocked" // waits for the store or the schema registry
	LaneFailing = "failing" // its last attempts ended with an error; it joins again and again
	LaneStopped = "stopped" // by an error that no repeat fixes: the process ends
)

// PipelineHeld is the state of a pipeline that is well but for a partition that waits at a record.
const PipelineHeld = "held"

// Lane is one member of the consumer group.
type Lane struct {
	Lane       int      `json:"lane"`
	State      string   `json:"state"`
	InHand     int      `json:"records_in_hand"` // records of the batch that it works on
	Partitions int      `json:"partitions"`
	Failures   int      `json:"failures_in_a_row"` // without a committed batch
	Failure    *Failure `json:"-"`                 // the last one, also when the lane has recovered
}

// Failure is an error that ended a lane's session.
type Failure struct {
	Text string
	Hint string // the likely remedy; may be empty
	At   time.Time
}

// Partition is a partition of the input that a lane of this process has.
type Partition struct {
	Partition int32 `json:"partition"`
	Lane      int   `json:"lane"`
	// offset below which everything was handled; 0 if that is not known
	DoneTo int64  `json:"done_to"`
	Lag    *int64 `json:"lag"` // nil until it was measured
	// records behind an open transaction of a producer, which are in no lag
	Hidden int64  `json:"behind_transactions"`
	Held   string `json:"held"` // at which record it waits, and why; empty if it does not
}

// DroppedCopy is a record that was not forwarded, because another one owns its ID.
type DroppedCopy struct {
	At        time.Time
	ID        []byte // empty: it is not told
	Place     string // orders[3]@812
	Owner     string // the same of the record that owns the ID
	ClaimedAt time.Time
	Conflict  bool   // it has other content than the owner
	Differs   string // in what; empty: not known
	Became    string
}

// What became of a dropped copy.
const (
	BecameNothing   = "dropped"
	BecameDuplicate = "kept" // on the duplicates topic
	BecameLetter    = "dead_letter"
)

// Count is a counter by name.
type Count struct {
	Name  string
	Total float64
}

// Store is what keeps the claims.
type Store struct {
	Type    string
	Claims  []Count   // by result
	Batches Durations // how long the claims of a batch took
	Blocked []string  // who waits for the store now
	Facts   []Fact    // what this type of store has to tell besides
	Keepers []Keeper  // who shares out the shards of a claim log, if processes do
}

// Keeper is a process that keeps shards of a claim log, or only asks those that do.
type Keeper struct {
	ConsumerGroup string `json:"consumer_group"`
	Instance      string `json:"instance"`
	Address       string `json:"address"`
	State         string `json:"state"`
	Shards        []int  `json:"shards"` // for which it answers, as it said last
	// blocks that are still to be read; nil of other processes
	Unread *int64 `json:"unread_blocks"`
}

// The states of a keeper.
const (
	KeeperSelf    = "this process"
	KeeperAnswers = "answers"
	KeeperSilent  = "silent" // it does not answer this process
	KeeperAsks    = "asks"   // it keeps nothing
)

// Fact is a number that only one type of store has.
type Fact struct {
	Name  string  `json:"name"`
	Value float64 `json:"value"`
	Unit  string  `json:"unit"` // count or bytes
}

// Durations is a histogram that grows.
type Durations struct {
	Bounds []float64 // in seconds, rising
	Counts []uint64  // durations up to each bound
	Count  uint64
	Sum    float64 // in seconds
}

// Event is a warning or an error that was logged; equal ones are counted.
type Event struct {
	Level   string // WARN or ERROR
	Message string
	Error   string
	Hint    string
	Topic   string
	Lane    string // of several: "0, 2"
	Details string // what else was logged with the last one, as key=value
	Count   int
	First   time.Time
	Last    time.Time
}

// Finding is what is known about an ID: the same in two forms.
type Finding struct {
	Rows []Row // for people
	JSON any   // for programs
}

// Row is one line about an ID.
type Row struct{ Name, Text string }

// About is what does not change while the process runs.
type About struct {
	Instance string    `json:"instance"`
	Version  string    `json:"version"`
	Revision string    `json:"revision"` // of the source; empty if it was not recorded
	Go       string    `json:"go"`
	Platform string    `json:"platform"`
	Started  time.Time `json:"started"`
}

// Setting is one setting that is in effect, its value fit to be shown.
type Setting struct {
	Name    string `json:"name"`
	Value   string `json:"value"`
	Default bool   `json:"default"`
}
