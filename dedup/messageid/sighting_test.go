package messageid_test

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/dedup/memory"
	"github.com/kdedup/kdedup/dedup/messageid"
)

func TestASkippedSchemaIDIsTold(t *testing.T) {
	e := mustExtractor(t, messageid.Source{From: "composite", Parts: []messageid.Source{
		{From: "json", Path: "id"}, {From: "json", Path: "n"}}})
	for _, doc := range []string{`{"id":1,"n":1}`, "\x00\x00\x00\x00\x01avro"} {
		e.Extract(&kgo.Record{Value: []byte(doc)})
		if e.SkippedSchemaID() {
			t.Errorf("%q has no document behind a schema ID", doc)
		}
	}
	e.Extract(&kgo.Record{Value: []byte("\x00\x00\x00\x00\x01{\"id\":1,\"n\":1}")})
	if !e.SkippedSchemaID() {
		t.Error("nobody hears of the schema ID")
	}
}

func TestTheLogTellsOfSchemaIDsOnce(t *testing.T) {
	var text strings.Builder
	e := mustExtractor(t, messageid.Source{From: "json", Path: "id"})
	store := memory.New(memory.Options{})
	defer store.Close()
	judge := func(doc string) {
		scope := dedup.Scope{ConsumerGroup: "g", Name: "t", TTL: time.Hour, Buckets: 1}
		d := dedup.New(scope, store, dedup.Options{Extractor: e,
			Logger: slog.New(slog.NewTextHandler(&text, nil))})
		_, err := d.Judge(t.Context(), []dedup.Message{{Record: &kgo.Record{Value: []byte(doc)}}})
		if err != nil {
			t.Fatal(err)
		}
	}
	if judge(`{"id":1}`); text.Len() > 0 {
		t.Error(text.String())
	}
	for range 3 { // lanes
		judge("\x00\x00\x00\x00\x01{\"id\":2}")
	}
	if n := strings.Count(text.String(), "five bytes of a schema registry"); n != 1 {
		t.Errorf("told %d times:\n%s", n, &text)
	}
}
