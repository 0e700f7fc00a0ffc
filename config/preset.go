package config

import (
	"maps"
	"reflect"
	"slices"
)

// preset is what the topics of one kind of producer have in common. docs/recipes has a page for
// each, whose examples are run.
type preset struct {
	messageID   MessageID
	fingerprint Fingerprint // the default if empty
	onTombstone Action      // the default if empty
	before      []earlier   // what it stood for, the newest first
}

// Presets of message_id.
const (
	PresetDebezium       = "debezium"
	PresetDebeziumOutbox = "debezium_outbox"
	PresetMaxwell        = "maxwell"
	PresetCanal          = "canal"
	PresetTiCDC          = "ticdc"
	PresetCockroachDB    = "cockroachdb"
	PresetMongoDB        = "mongodb"
	PresetDMS            = "dms"
	PresetCloudEvents    = "cloudevents"
	PresetStripe         = "stripe"
	PresetShopify        = "shopify"
	PresetGitHub         = "github"
	PresetSpring         = "spring"
	PresetSegment        = "segment"
	PresetSnowplow       = "snowplow"
)

// presets are shared: nothing modifies them.
var presets = map[string]preset{
	PresetDebezium: {
		messageID:   MessageID{From: FromDebezium},
		fingerprint: Fingerprint{Of: FingerprintNone},
		onTombstone: ActionForward,
		before: []earlier{{
			messageID:   MessageID{From: FromValueHash, Ignore: debeziumOwn},
			fingerprint: Fingerprint{Of: FingerprintAll, Ignore: debeziumOwn},
		}, {
			messageID:   MessageID{From: FromValueHash, Ignore: debeziumOwnBefore},
			fingerprint: Fingerprint{Of: FingerprintAll, Ignore: debeziumOwnBefore},
		}},
	},
	PresetMaxwell:     changesOf(FromMaxwell),
	PresetCanal:       changesOf(FromCanal),
	PresetTiCDC:       changesOf(FromTiCDC),
	PresetCockroachDB: changesOf(FromCockroachDB),
	PresetMongoDB:     changesOf(FromMongoDB),
	PresetDMS:         changesOf(FromDMS),
	PresetDebeziumOutbox: {
		messageID: MessageID{From: FromHeader, Name: "id",
			Normalize: []string{NormalizePayload, NormalizeUnquote, NormalizeUUID}},
		before: []earlier{{messageID: MessageID{From: FromHeader, Name: "id",
			Normalize: []string{NormalizeUnquote, NormalizeUUID}}}},
	},
	PresetCloudEvents: {
		messageID: MessageID{From: FromFirstOf, Parts: append(slices.Clone(cloudEventsPlaces),
			inHeaders("ce_source", "ce_id", HeaderAny),
			inHeaders("ce-source", "ce-id", HeaderAny))},
		fingerprint: Fingerprint{Of: FingerprintNone},
		before: []earlier{{messageID: MessageID{From: FromFirstOf, Parts: cloudEventsPlaces},
			fingerprint: Fingerprint{Of: FingerprintNone}, sameIDs: true}},
	},
	PresetStripe: {
		messageID: MessageID{From: FromJSON, Path: "id"},
		fingerprint: Fingerprint{Of: FingerprintAll,
			Ignore: []string{"pending_webhooks"}},
	},
	PresetShopify: {
		messageID: MessageID{From: FromFirstOf, Parts: append(slices.Clone(shopifySpellings),
			inHeaders("x-shopify-topic", "x-shopify-event-id", HeaderAny))},
		before: []earlier{{messageID: MessageID{From: FromFirstOf, Parts: shopifySpellings},
			sameIDs: true}},
	},
	PresetGitHub: {
		messageID: MessageID{From: FromFirstOf, Parts: append(slices.Clone(gitHubSpellings),
			MessageID{From: FromHeader, Name: "x-github-delivery", HeaderCase: HeaderAny})},
		before: []earlier{{messageID: MessageID{From: FromFirstOf, Parts: gitHubSpellings},
			sameIDs: true}},
	},
	PresetSpring: {
		messageID: MessageID{From: FromHeader, Name: "id",
			Normalize: []string{NormalizeUnquote, NormalizeUUID}},
	},
	PresetSegment: {
		messageID: MessageID{From: FromJSON, Path: "messageId"},
		fingerprint: Fingerprint{Of: FingerprintAll,
			Ignore: []string{"sentAt", "receivedAt", "timestamp"}},
	},
	PresetSnowplow: {
		messageID: MessageID{From: FromFirstOf, Parts: []MessageID{
			{From: FromComposite, Parts: []MessageID{{From: FromJSON, Path: "event_id"},
				{From: FromJSON, Path: "event_fingerprint"}}},
			{From: FromJSON, Path: "event_id"},
		}},
		fingerprint: Fingerprint{Of: FingerprintAll, Ignore: []string{"collector_tstamp",
			"derived_tstamp", "dvce_sent_tstamp", "etl_tstamp", "load_tstamp"}},
	},
}

// changesOf is for a place whose ID says all that counts.
func changesOf(from string) preset {
	return preset{messageID: MessageID{From: from},
		fingerprint: Fingerprint{Of: FingerprintNone}, onTombstone: ActionForward}
}

// debeziumOwn did not count in the hash that the preset was: what a connector says of itself. With
// the schema in each record, a change is in payload.
var debeziumOwn = withPayload("ts_ms", "ts_us", "ts_ns", "transaction", "source.version",
	"source.sequence", "source.snapshot")

// debeziumOwnBefore are those of the version that counted transaction.
var debeziumOwnBefore = withPayload("ts_ms", "ts_us", "ts_ns", "source.version",
	"source.sequence")

func withPayload(fields ...string) []string {
	all := fields
	for _, field := range fields {
		all = append(all, "payload."+field)
	}
	return all
}

// The places that were all in an earlier version come first: so each ID that it found is found as
// it was.
var (
	cloudEventsPlaces = []MessageID{
		inHeaders("ce_source", "ce_id", ""),
		{From: FromComposite, Parts: []MessageID{
			{From: FromJSON, Path: "source"}, {From: FromJSON, Path: "id"}}},
	}
	gitHubSpellings = []MessageID{
		{From: FromHeader, Name: "X-GitHub-Delivery"},
		{From: FromHeader, Name: "x-github-delivery"},
	}
	shopifySpellings = []MessageID{
		inHeaders("X-Shopify-Topic", "X-Shopify-Event-Id", ""),
		inHeaders("x-shopify-topic", "x-shopify-event-id", ""),
	}
)

func inHeaders(first, second, headerCase string) MessageID {
	return MessageID{From: FromComposite, Parts: []MessageID{
		{From: FromHeader, Name: first, HeaderCase: headerCase},
		{From: FromHeader, Name: second, HeaderCase: headerCase}}}
}

// Presets are the names that message_id.preset may have, in their order.
func Presets() []string { return slices.Sorted(maps.Keys(presets)) }

// WithPreset is the entry with what the preset stands for; an unknown one stands for nothing.
func (t Topic) WithPreset(name string) Topic {
	stands, known := presets[name]
	if !known {
		return t
	}
	t.MessageID = stands.messageID
	t.MessageID.Preset = name
	if stands.fingerprint.Of != "" {
		t.Fingerprint = stands.fingerprint
	}
	if stands.onTombstone != "" {
		t.OnTombstone = stands.onTombstone
	}
	return t
}

// entryDefault is what a topic's settings are laid over: the defaults, or what its preset stands
// for where the entry says nothing. A mapping or a list that the entry has replaces that of the
// preset as a whole; only message_id is laid over it key by key.
func entryDefault(settings any, path string, p *problems) Topic {
	entry, _ := settings.(map[string]any)
	own, _ := entry["message_id"].(map[string]any)
	text, _ := own["preset"].(string)
	name, err := p.variables.expand(text)
	if err != nil {
		return DefaultTopic() // decode reports it
	}
	t := DefaultTopic().WithPreset(name)
	if own["ignore"] != nil || own["only"] != nil {
		t = t.withHash()
	}
	if entry["fingerprint"] != nil {
		t.Fingerprint = DefaultTopic().Fingerprint
	}
	id := reflect.ValueOf(&t.MessageID).Elem()
	for key, field := range keys(id.Type()) {
		if own[key] != nil {
			id.FieldByIndex(field.Index).SetZero()
		}
	}
	if entry["input.pattern"] != nil {
		t.Lanes = patternLanes
		if _, set := p.places[path+".lanes"]; !set {
			p.places[path+".lanes"] = "default of a pattern"
		}
	}
	notePreset(p, path, "preset "+name, t)
	return t
}

// withHash is an entry with a preset whose fields of a hash it sets itself.
func (t Topic) withHash() Topic {
	if hashed, was := presets[t.MessageID.Preset].hashed(); was {
		name := t.MessageID.Preset
		t.MessageID, t.Fingerprint = hashed.messageID, hashed.fingerprint
		t.MessageID.Preset = name
	}
	return t
}

// notePreset tells the place of each setting that is the preset's.
func notePreset(p *problems, path, place string, t Topic) {
	walk(reflect.ValueOf(t), reflect.ValueOf(DefaultTopic()), path,
		func(at string, value, normal reflect.Value) {
			same := reflect.DeepEqual(value.Interface(), normal.Interface())
			if _, set := p.places[at]; !set && !same {
				p.places[at] = place
			}
		})
}

// checkPreset reports whether the preset is one, or none is named. It refuses what would leave
// nothing of it.
func checkPreset(p *problems, path string, m MessageID) bool {
	if m.Preset == "" {
		return true
	}
	if !oneOf(p, path+".preset", m.Preset, Presets()...) {
		return false
	}
	stands := presets[m.Preset].messageID
	if hashed, was := presets[m.Preset].hashed(); was && m.From == hashed.messageID.From &&
		len(m.Ignore)+len(m.Only) > 0 {
		return true
	}
	key := ""
	switch {
	case m.From != "" && m.From != stands.From:
		key = "from"
	case m.From != "" && !reflect.DeepEqual(m.Parts, stands.Parts):
		key = "parts"
	default:
		return true
	}
	p.add(path+"."+key, "leave out one of the two", "excludes %s.preset: %s says where the ID "+
		"stands", path, m.Preset)
	return true
}
