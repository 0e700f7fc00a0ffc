package connect

import (
	"context"
	"encoding/binary"
	"testing"

	"github.com/twmb/avro"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/config"
	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/dedup/messageid"
)

// envelope is what Debezium's connector for PostgreSQL registers by Confluent's AvroConverter,
// with fewer columns and fewer fields of the source.
const envelope = `{"type":"record","name":"Envelope","namespace":"shop.public.orders","fields":[
 {"name":"before","type":["null",{"type":"record","name":"Value","fields":[
   {"name":"id","type":"int"},{"name":"state","type":["null","string"],"default":null}]}]},
 {"name":"after","type":["null","Value"]},
 {"name":"source","type":{"type":"record","name":"Source",
   "namespace":"io.debezium.connector.postgresql","fields":[{"name":"version","type":"string"},
   {"name":"ts_ms","type":"long"},{"name":"lsn","type":["null","long"]}]}},
 {"name":"op","type":"string"},{"name":"ts_ms","type":["null","long"]}]}`

type oneSchema string

func (s oneSchema) Schema(context.Context, uint32) (messageid.Schema, error) {
	return messageid.Schema{Type: messageid.FromAvro, Text: string(s)}, nil
}

// A connector that starts over reads a change again at another time.
func TestThePresetOfDebeziumHoldsForAvro(t *testing.T) {
	topic := orders().WithPreset(config.PresetDebezium)
	topic.MessageID.Format = config.FormatAvro
	e, err := ExtractorOf(topic, oneSchema(envelope))
	if err != nil {
		t.Fatal(err)
	}
	change := func(state string, lsn, at int64) (dedup.ID, dedup.Fingerprint) {
		t.Helper()
		body, err := avro.MustParse(envelope).Encode(map[string]any{"before": nil,
			"after":  map[string]any{"id": int32(1), "state": state},
			"source": map[string]any{"version": "3.3", "ts_ms": int64(7), "lsn": lsn},
			"op":     "u", "ts_ms": at})
		if err != nil {
			t.Fatal(err)
		}
		r := &kgo.Record{Key: []byte("k"),
			Value: append(binary.BigEndian.AppendUint32([]byte{0}, 7), body...)}
		id, missing, err := dedup.ExtractNow(t.Context(), e, r)
		if err != nil || missing != dedup.NotMissing {
			t.Fatal(missing, err)
		}
		return id, e.Fingerprinter().Of(r)
	}
	id, content := change("paid", 100, 1)
	if again, same := change("paid", 100, 2); again != id || !same.Matches(content) {
		t.Error("a change that is read again is another message")
	}
	for name, other := range map[string]func() (dedup.ID, dedup.Fingerprint){
		"another state":    func() (dedup.ID, dedup.Fingerprint) { return change("sent", 100, 1) },
		"another position": func() (dedup.ID, dedup.Fingerprint) { return change("paid", 101, 1) },
	} {
		if got, _ := other(); got == id {
			t.Errorf("%s is the same message", name)
		}
	}
}
