package config

import "time"

// cassandraEnd is when the time of Cassandra ends unless its storage_compatibility_mode is NONE: an
// insert whose TTL reaches beyond is refused (CASSANDRA-14092).
var cassandraEnd = time.Date(2038, time.January, 19, 3, 14, 6, 0, time.UTC)

func checkCassandraTTL(p *problems, path string, ttl, margin time.Duration) {
	if most := (time.Until(cassandraEnd) - margin).Truncate(24 * time.Hour); ttl > most {
		p.add(path, "", "must be at most %v now: Cassandra refuses claims that end after %s", most,
			cassandraEnd.Format(time.DateOnly))
	}
}

// maxTTL is Cassandra's limit, 20 years of 365 days.
const maxTTL = 630720000 * time.Second

func (t Topic) check(p *problems, path string) {
	t.checkNames(p, path)
	t.MessageID.check(p, path+".message_id")
	t.OnlyIf.check(p, path+".only_if")
	t.Fingerprint.check(p, path+".fingerprint")
	t.checkChoices(p, path)
	within(p, path+".lanes", t.Lanes, 1, 64)
	within(p, path+".ttl", t.TTL, time.Second, maxTTL)
	if t.TTL%time.Second != 0 {
		p.add(path+".ttl", "", "must be whole seconds, got %v", t.TTL)
	}
	within(p, path+".buckets", t.Buckets, 1, 1_000_000)
	within(p, path+".outage_grace", t.OutageGrace, 100*time.Millisecond, longest)
	within(p, path+".batch_records", t.BatchRecords, 1, 100_000)
	within(p, path+".batch_bytes", t.BatchBytes, 64<<10, 1<<30)
	within(p, path+".fetch_bytes", t.FetchBytes, 64<<10, 1<<30)
	within(p, path+".unpacked_bytes", t.UnpackedBytes, 1<<20, 1<<30)
	within(p, path+".session_timeout", t.SessionTimeout, 6*time.Second, 30*time.Minute)
	within(p, path+".transaction_timeout", t.TransactionTimeout, 5*time.Second, 15*time.Minute)
}

func (t Topic) checkChoices(p *problems, path string) {
	oneOf(p, path+".delivery", t.Delivery, DeliveryExactlyOnce, DeliveryAtLeastOnce)
	oneOf(p, path+".mode", t.Mode, ModeEnforce, ModeAnnotate, ModeObserve)
	oneOf(p, path+".on_missing_id", t.OnMissingID, ActionDeadLetter, ActionForward, ActionDrop,
		ActionFail)
	oneOf(p, path+".documents", t.Documents, DocumentsAny, DocumentsWhole)
	oneOf(p, path+".on_tombstone", t.OnTombstone, ActionAsAny, ActionForward, ActionDeadLetter,
		ActionDrop)
	oneOf(p, path+".on_conflict", t.OnConflict, ActionDrop, ActionForward, ActionDeadLetter)
	oneOf(p, path+".on_replay", t.OnReplay, ActionDrop, ActionForward)
	oneOf(p, path+".on_undeliverable", t.OnUndeliverable, ActionDeadLetter, ActionDrop, ActionStop)
	oneOf(p, path+".on_skip", t.OnSkip, ActionReread, ActionAccept)
	oneOf(p, path+".on_store_outage", t.OnStoreOutage, ActionBlock, ActionForward)
	oneOf(p, path+".ttl_from", t.TTLFrom, TTLFromFirst, TTLFromLast)
	oneOf(p, path+".partitioner", t.Partitioner, PartitionerPreserve, PartitionerByKey)
	oneOf(p, path+".compression", t.Compression, CompressionInput, CompressionNone, CompressionGzip,
		CompressionSnappy, CompressionLZ4, CompressionZstd)
	oneOf(p, path+".start", t.Start, StartEarliest, StartLatest)
	oneOf(p, path+".group_protocol", t.GroupProtocol, ProtocolClassic, ProtocolConsumer)
}

// role is one of a pipeline's topics.
type role struct{ key, name string }

// roles lists the topics that are set.
func (t Topic) roles() []role {
	all := []role{
		{"input", t.Input}, {"output", t.Output}, {"duplicates_topic", t.DuplicatesTopic},
		{"dead_letter_topic", t.DeadLetterTopic}, {"fence_topic", t.FenceTopic},
	}
	set := all[:0]
	for _, r := range all {
		if r.name != "" {
			set = append(set, r)
		}
	}
	return set
}

func (t Topic) checkNames(p *problems, path string) {
	p.require(path+".input", t.Input)
	p.require(path+".output", t.Output)
	p.require(path+".consumer_group", t.ConsumerGroup)
	t.checkDeadLetter(p, path)
	roles := t.roles()
	for i, r := range roles {
		p.topicName(path+"."+r.key, r.name)
		for _, earlier := range roles[:i] {
			if r.name == earlier.name {
				p.add(path+"."+r.key, "", "must differ from %s, both are %q", earlier.key, r.name)
			}
		}
	}
}

func (t Topic) checkDeadLetter(p *problems, path string) {
	if t.DeadLetterTopic != "" {
		return
	}
	if t.OnMissingID == ActionDeadLetter {
		p.add(path+".dead_letter_topic",
			"name a topic, or set on_missing_id to forward, drop or fail",
			"is required while on_missing_id is dead_letter")
	}
	if t.OnTombstone == ActionDeadLetter {
		p.add(path+".dead_letter_topic",
			"name a topic, or set on_tombstone to as_any, forward or drop",
			"is required while on_tombstone is dead_letter")
	}
	if t.OnConflict == ActionDeadLetter {
		p.add(path+".dead_letter_topic", "name a topic, or set on_conflict to drop or forward",
			"is required while on_conflict is dead_letter")
	}
}
