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
}

// Presets of message_id.
const (
	PresetDebezium       = "debezium"
	PresetDebeziumOutbox = "debezium_outbox"
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
		messageID:   MessageID{From: FromValueHash, Ignore: debeziumOwn},
		fingerprint: Fingerprint{Of: FingerprintAll, Ignore: debeziumOwn},
		onTombstone: ActionForward,
	},
	PresetDebeziumOutbox: {
		messageID: MessageID{From: FromHeader, Name: "id",
			Normalize: []string{NormalizeUnquote, NormalizeUUID}},
	},
	PresetCloudEvents: {
		messageID: MessageID{From: FromFirstOf, Parts: []MessageID{
			{From: FromComposite, Parts: []MessageID{
				{From: FromHeader, Name: "ce_source"}, {From: FromHeader, Name: "ce_id"}}},
			{From: FromComposite, Parts: []MessageID{
				{From: FromJSON, Path: "source"}, {From: FromJSON, Path: "id"}}},
		}},
		fingerprint: Fingerprint{Of: FingerprintNone},
	},
	PresetStripe: {
		messageID: MessageID{From: FromJSON, Path: "id"},
		fingerprint: Fingerprint{Of: FingerprintAll,
			Ignore: []string{"pending_webhooks"}},
	},
	PresetShopify: {
		messageID: MessageID{From: FromFirstOf, Parts: []MessageID{
			{From: FromComposite, Parts: []MessageID{
				{From: FromHeader, Name: "X-Shopify-Topic"},
				{From: FromHeader, Name: "X-Shopify-Event-Id"}}},
			{From: FromComposite, Parts: []MessageID{
				{From: FromHeader, Name: "x-shopify-topic"},
				{From: FromHeader, Name: "x-shopify-event-id"}}},
		}},
	},
	PresetGitHub: {
		messageID: MessageID{From: FromFirstOf, Parts: []MessageID{
			{From: FromHeader, Name: "X-GitHub-Delivery"},
			{From: FromHeader, Name: "x-github-delivery"},
		}},
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

// debeziumOwn are the fields of a change that tell about the connector: when it read the change,
// how far it had come before, and its version. With the schema in each record, a change is in
// payload.
var debeziumOwn = []string{
	"ts_ms", "ts_us", "ts_ns", "source.version", "source.sequence",
	"payload.ts_ms", "payload.ts_us", "payload.ts_ns", "payload.source.version",
	"payload.source.sequence",
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
	if entry["fingerprint"] != nil {
		t.Fingerprint = DefaultTopic().Fingerprint
	}
	id := reflect.ValueOf(&t.MessageID).Elem()
	for key, field := range keys(id.Type()) {
		if own[key] != nil {
			id.FieldByIndex(field.Index).SetZero()
		}
	}
	notePreset(p, path, "preset "+name, t)
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
