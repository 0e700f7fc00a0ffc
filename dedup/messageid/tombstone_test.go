package messageid_test

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/dedup/messageid"
)

func TestWhatIsNoChangeHasNoID(t *testing.T) {
	e := mustExtractor(t, messageid.Source{From: messageid.FromDebezium})
	for value, want := range map[string]dedup.MissingReason{
		`{"ts_ms":1700000000000}`:                                  dedup.MissingAbsent,
		`{"schema":{},"payload":{"ts_ms":1700000000000}}`:          dedup.MissingAbsent,
		`{"status":"BEGIN","id":"1:2","ts_ms":1}`:                  dedup.MissingAbsent,
		`{"source":{"lsn":1},"databaseName":"a","ddl":"x"}`:        dedup.MissingAbsent,
		`{"id":1,"state":"new"}`:                                   dedup.MissingAbsent,
		`{"op":"c","source":"shop"}`:                               dedup.MissingAbsent,
		`{"op":1,"source":{}}`:                                     dedup.MissingAbsent,
		`{"schema":{},"payload":null}`:                             dedup.MissingAbsent,
		`null`:                                                     dedup.MissingNull,
		`[1]`:                                                      dedup.MissingAbsent,
		`{"op":"c","source":{"lsn":1},"after":{"id":1`:             dedup.MissingUnparsable,
		`{"op":"c","source":{"connector":"postgresql","lsn":1}} x`: dedup.MissingUnparsable,
		`avro`: dedup.MissingUnparsable,
		``:     dedup.MissingEmpty,
	} {
		if id, missing := e.Extract(&kgo.Record{Value: []byte(value)}); missing != want {
			t.Errorf("%s: %q, %v, want %v", value, id, missing, want)
		}
	}
	if _, missing := e.Extract(new(kgo.Record)); missing != dedup.MissingNull {
		t.Errorf("a tombstone: %v", missing)
	}
}

// Heartbeats are but a time, which does not count: they would all be copies of the first one.
func TestAValueOfWhichNothingIsLeftHasNoID(t *testing.T) {
	hash := mustExtractor(t, messageid.Source{From: "value_hash",
		Ignore: []string{"ts_ms", "payload.ts_ms", "meta.at", "payload.source.at"}})
	for value, missing := range map[string]bool{
		`{"ts_ms":1}`: true, `{}`: true, `{"ts_ms":1,"meta":{"at":2}}`: true, `{"meta":{}}`: true,
		`{"schema":{"a":1},"payload":{"ts_ms":2}}`: true, `{"payload":{"ts_ms":2}}`: true,
		`{"schema":{},"payload":{"source":{"at":1}}}`: true,
		`{"ts_ms":1,"a":null}`:                        false, `{"meta":{"at":2,"b":1}}`: false,
		`{"meta":[]}`: false, `{"schema":{},"ts_ms":2}`: false, `[]`: false, `7`: false,
		`{"schema":{},"payload":{"ts_ms":2,"a":1}}`: false, `{"a":{}}`: false, `{"ts_ms":1`: false,
	} {
		_, why := hash.Extract(&kgo.Record{Value: []byte(value)})
		if got := why == dedup.MissingEmpty; got != missing {
			t.Errorf("%s: %v", value, why)
		}
	}
}

func TestTombstonesAreKnownHoweverConnectWritesThem(t *testing.T) {
	e, err := mustExtractor(t, messageid.Source{From: "key"}).With(messageid.Rules{
		Tombstones: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, value := range []string{"null", `{"schema":null,"payload":null}`,
		`{"schema":{"type":"struct","fields":[{"a":null}]},"payload":null}`} {
		r := &kgo.Record{Key: []byte("k"), Value: []byte(value)}
		if _, missing := e.Extract(r); missing != dedup.MissingTombstone {
			t.Errorf("%s: %v", value, missing)
		}
	}
	for _, value := range []string{"", "nul", "null ", `"null"`, `{"payload":null}`, `{"a":null}`,
		`{"schema":{},"payload":{"a":null}}`, `{"schema":{},"payload":null,"a":null}`,
		`{"schema":{},"payload":1}`, `{"schema":null}`} {
		r := &kgo.Record{Key: []byte("k"), Value: []byte(value)}
		if _, missing := e.Extract(r); missing != dedup.NotMissing {
			t.Errorf("%s: %v", value, missing)
		}
	}
}

// The outbox router's header, as the SimpleHeaderConverter, the JsonConverter without and with
// schemas write it.
func TestAnIDInADocumentOfConnectIsTheIDItself(t *testing.T) {
	e := mustExtractor(t, messageid.Source{From: "header", Name: "id", Normalize: []string{
		messageid.NormalizePayload, messageid.NormalizeUnquote, messageid.NormalizeUUID}})
	const id = "4d47e190-0402-4048-bc2c-89dd54343cdc"
	const more = `{"schema":{},"payload":7,"more":1}`
	for text, want := range map[string]string{
		id:             id,
		`"` + id + `"`: id,
		`{"schema":{"type":"string","optional":false},"payload":"` + id + `"}`: id,
		`{"schema":{"type":"int64"},"payload":7}`:                              "7",
		more:                      more,
		`{"payload":7}`:           `{"payload":7}`,
		`{"schema":1,"payload":7`: `{"schema":1,"payload":7`,
	} {
		r := &kgo.Record{Headers: headers("id", text)}
		if got := changeID(t, e, r); got != dedup.ID(want) {
			t.Errorf("%s: %q", text, got)
		}
	}
	r := &kgo.Record{Headers: headers("id", `{"schema":{},"payload":null}`)}
	if _, missing := e.Extract(r); missing != dedup.MissingEmpty {
		t.Errorf("a payload that is null: %v", missing)
	}
}
