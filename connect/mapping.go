package connect

import (
	"fmt"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/config"
	"github.com/kdedup/kdedup/connect/kafka"
	"github.com/kdedup/kdedup/consumer/client"
	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/dedup/messageid"
	"github.com/kdedup/kdedup/forwarder"
	"github.com/kdedup/kdedup/pipeline"
)

// transactionalIDs are those of all lanes.
func transactionalIDs(c config.Config, t config.Topic) []string {
	all := make([]string, t.Lanes)
	for lane := range all {
		all[lane] = client.TransactionalID(t.ConsumerGroup, c.Instance, lane)
	}
	return all
}

// GroupOf is the consumer group of an entry.
func GroupOf(t config.Topic) client.Group {
	return client.Group{
		Name: t.ConsumerGroup, Input: t.Input, FenceTopic: t.FenceTopic,
		FromEnd: t.Start == config.StartLatest, Earlier: EarlierOf(t),
	}
}

// GroupAt is the consumer group of an entry with a client of the cluster that has it.
func GroupAt(clusters kafka.Clusters, t config.Topic) (client.Group, *kgo.Client) {
	g := GroupOf(t)
	if clusters.SplitsGroup(t) {
		g.Inputs = clusters.Input
	}
	return g, clusters.OfGroup(t)
}

// EarlierOf is the group whose claims the entry goes on with: a scope_group that is not its own
// group is the name that the group had before, or one that several inputs share.
func EarlierOf(t config.Topic) client.Earlier {
	topic := config.FenceTopicOf(t.ScopeGroup)
	if t.ScopeGroup == t.ConsumerGroup || topic == t.FenceTopic {
		return client.Earlier{}
	}
	return client.Earlier{Group: t.ScopeGroup, FenceTopic: topic}
}

// ExtractorOf finds the message IDs of an entry. Nobody asks the registry before a record does; for
// who extracts nothing it may be nil.
func ExtractorOf(t config.Topic, schemas messageid.Registry) (*messageid.Extractor, error) {
	schemas = messageid.OfValues(schemas, t.Schema)
	e, err := messageid.New(sourceOf(t.MessageID, schemas))
	if err != nil {
		return nil, err
	}
	return e.With(messageid.Rules{OnlyIf: conditionOf(t.OnlyIf, schemas),
		WholeJSON:  t.Documents == config.DocumentsWhole,
		Tombstones: t.OnTombstone != "" && t.OnTombstone != config.ActionAsAny,
		Fingerprint: messageid.Content{None: t.Fingerprint.Of == config.FingerprintNone,
			Ignore: t.Fingerprint.Ignore, Only: t.Fingerprint.Only, Format: t.ContentFormat()},
		Registry: schemas})
}

func conditionOf(c config.Condition, schemas messageid.Registry) *messageid.Condition {
	if c.From == "" {
		return nil
	}
	return &messageid.Condition{Place: sourceOf(c.Place(), schemas), Is: c.Is}
}

// sourceOf is where a message ID stands.
func sourceOf(m config.MessageID, schemas messageid.Registry) messageid.Source {
	s := messageid.Source{From: m.From, Name: m.Name, HeaderCase: m.HeaderCase,
		Occurrence: m.Occurrence, Path: m.Path, Part: m.Part, Normalize: m.Normalize,
		Ignore: m.Ignore, Only: m.Only, Format: m.Format, AnySource: m.AnySource,
		Registry: schemas, HMACKey: []byte(m.HMACKey.Reveal())}
	for _, part := range m.Parts {
		s.Parts = append(s.Parts, sourceOf(part, schemas))
	}
	return s
}

// ScopeOf is what the claims of an entry stand under. The extractor matters only where the
// scope is registered or compared.
func ScopeOf(t config.Topic, extractor string) dedup.Scope {
	return dedup.Scope{ConsumerGroup: t.ScopeGroup, Name: t.Scope, TTL: t.TTL, Buckets: t.Buckets,
		Extractor: extractor}
}

// RetryOf is how long a lane claims again.
func RetryOf(t config.Topic) dedup.Retry {
	retry := dedup.DefaultRetry
	if t.OnStoreOutage == config.ActionForward {
		retry.GiveUpAfter = t.OutageGrace
	}
	return retry
}

// PolicyOf maps values that config has checked.
func PolicyOf(t config.Topic) pipeline.Policy {
	return pipeline.Policy{
		Mode: meaning(modes, t.Mode), OnMissingID: meaning(choices, t.OnMissingID),
		OnConflict: meaning(choices, t.OnConflict), OnReplay: meaning(choices, t.OnReplay),
		OnTombstone:     meaning(choices, t.OnTombstone),
		OnUndeliverable: meaning(undeliverable, t.OnUndeliverable),
	}
}

var (
	modes = map[config.Mode]pipeline.Mode{
		config.ModeEnforce: pipeline.Enforce, config.ModeAnnotate: pipeline.Annotate,
		config.ModeObserve: pipeline.Observe,
	}
	choices = map[config.Action]pipeline.Choice{
		config.ActionDrop: pipeline.Drop, config.ActionForward: pipeline.Forward,
		config.ActionDeadLetter: pipeline.DeadLetter, config.ActionFail: pipeline.Fail,
		config.ActionAsAny: pipeline.Forward, // of verdicts that there are not, then
	}
	undeliverable = map[config.Action]pipeline.Undeliverable{
		config.ActionDeadLetter: pipeline.BuryUndeliverable,
		config.ActionDrop:       pipeline.DropUndeliverable,
		config.ActionStop:       pipeline.StopAtUndeliverable,
	}
)

// meaning panics for a value that has none: the zero value would drop records.
func meaning[Value ~string, Meaning any](of map[Value]Meaning, value Value) Meaning {
	found, known := of[value]
	if !known {
		panic(fmt.Sprintf("no meaning is known of the configured value %q", value))
	}
	return found
}

// Compress says how the records are compressed that a topic's pipeline writes.
func Compress(t config.Topic, to *forwarder.Topics) {
	if t.Compression == config.CompressionInput {
		to.Input = forwarder.NewInputCodec()
		return
	}
	to.Compression = meaning(compressions, t.Compression)
}

var compressions = map[config.Compression]kgo.CompressionCodec{
	config.CompressionNone: kgo.NoCompression(), config.CompressionGzip: kgo.GzipCompression(),
	config.CompressionSnappy: kgo.SnappyCompression(), config.CompressionLZ4: kgo.Lz4Compression(),
	config.CompressionZstd: kgo.ZstdCompression(),
}
