package connect

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/config"
	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/dedup/memory"
)

func presetEntry(preset string) Entry {
	return Entry{Topic: orders().WithPreset(preset)}
}

// beforeOf are the extractors of the versions before a preset changed.
func beforeOf(t *testing.T, topic config.Topic) (all []dedup.Extractor) {
	t.Helper()
	for _, before := range topic.Before() {
		e, err := ExtractorOf(before.Topic, nil)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, e)
	}
	if len(all) == 0 {
		t.Fatal("the preset has always stood for the same")
	}
	return all
}

func change(transaction, sequence, snapshot string) *kgo.Record {
	return &kgo.Record{Key: []byte("k"), Value: []byte(`{"after":{"id":1},"source":{"lsn":7,` +
		`"sequence":"` + sequence + `","snapshot":"` + snapshot + `","ts_ms":3},"transaction":` +
		transaction + `,"op":"u","ts_ms":` + sequence + `}`)}
}

// The claims of a scope are of the IDs that its version found: copies of them stay copies, and
// other processes may be of that version.
func TestAScopeGoesOnByWhatItsPresetStoodForWhenItWasMade(t *testing.T) {
	for n, before := range beforeOf(t, presetEntry(config.PresetDebezium).Topic) {
		store := memory.New(memory.Options{})
		defer store.Close()
		e := presetEntry(config.PresetDebezium)
		if err := store.Register(t.Context(), ScopeOf(e.Topic, before.String())); err != nil {
			t.Fatal(err)
		}
		if err := e.Compare(t.Context(), store); err != nil {
			t.Fatal(err)
		}
		if !e.KeepsEarlier || !strings.Contains(e.Earlier(), "docs/recipes/debezium.md") {
			t.Errorf("version %d: it keeps what was: %v: %s", n, e.KeepsEarlier, e.Earlier())
		}
		if err := e.Register(t.Context(), store); err != nil {
			t.Fatal(err)
		}
		r := change(`{"total_order":1}`, "1", "false")
		if got, want := idOf(t, e.Extractor, r), idOf(t, before, r); got != want {
			t.Error("the ID is another one than that of the version that made the scope")
		}

		fresh := presetEntry(config.PresetDebezium)
		fresh.Scope = "another"
		if err := fresh.Compare(t.Context(), store); err != nil || fresh.KeepsEarlier {
			t.Errorf("a new scope keeps what was: %v, %v", fresh.KeepsEarlier, err)
		}
		if idOf(t, fresh.Extractor, r) != idOf(t, fresh.Extractor,
			change(`{"total_order":9,"data_collection_order":4}`, "2", "last")) {
			t.Error("a change that is sent again after a restart is another message")
		}
	}
}

// An outbox whose headers were documents was claimed by the documents.
func TestAScopeOfAnOutboxGoesOnByItsDocuments(t *testing.T) {
	store := memory.New(memory.Options{})
	defer store.Close()
	e := presetEntry(config.PresetDebeziumOutbox)
	before := beforeOf(t, e.Topic)[0]
	document := &kgo.Record{Headers: []kgo.RecordHeader{{Key: "id",
		Value: []byte(`{"schema":{"type":"string"},"payload":"a-1"}`)}}}
	if got := idOf(t, mustExtractorOf(t, e.Topic), document); got != "a-1" {
		t.Errorf("a new scope claims %s", got)
	}
	if err := store.Register(t.Context(), ScopeOf(e.Topic, before.String())); err != nil {
		t.Fatal(err)
	}
	if err := e.Compare(t.Context(), store); err != nil {
		t.Fatal(err)
	}
	if got, want := idOf(t, e.Extractor, document), idOf(t, before, document); got != want {
		t.Errorf("the ID is %s, and was %s", got, want)
	}
}

func mustExtractorOf(t *testing.T, topic config.Topic) dedup.Extractor {
	t.Helper()
	e, err := ExtractorOf(topic, nil)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// A preset that finds more than it did, and nothing in another way, holds for all its scopes.
func TestAPresetThatFindsMoreGoesOnWithItsClaims(t *testing.T) {
	for preset, names := range map[string][]string{
		config.PresetGitHub:      {"X-GitHub-Delivery"},
		config.PresetShopify:     {"X-Shopify-Topic", "X-Shopify-Event-Id"},
		config.PresetCloudEvents: {"ce_source", "ce_id"},
	} {
		store := memory.New(memory.Options{})
		defer store.Close()
		e := presetEntry(preset)
		before := beforeOf(t, e.Topic)[0]
		scope := ScopeOf(e.Topic, before.String())
		if err := store.Register(t.Context(), scope); err != nil {
			t.Fatal(err)
		}
		if err := e.Compare(t.Context(), store); err != nil {
			t.Fatal(err)
		}
		if err := e.Register(t.Context(), store); err != nil {
			t.Fatal(err)
		}
		if e.KeepsEarlier {
			t.Errorf("%s: the scope keeps what was", preset)
		}
		random := rand.New(rand.NewPCG(1, 1))
		found := 0
		for range 2000 {
			r := withHeaders(random, names)
			was, missing := before.Extract(r)
			now, none := e.Extractor.Extract(r)
			switch {
			case none != dedup.NotMissing && len(r.Headers) >= 2*len(names):
				t.Fatalf("%s: no ID in %v", preset, r.Headers)
			case missing == dedup.NotMissing && now != was:
				t.Fatalf("%s: the ID of %v was %q and is %q", preset, r.Headers, was, now)
			case missing != dedup.NotMissing && none == dedup.NotMissing:
				found++
			}
		}
		if found == 0 {
			t.Errorf("%s finds no more than it did", preset)
		}
	}
}

// withHeaders has each name once or twice, in any case, and values of a few.
func withHeaders(random *rand.Rand, names []string) *kgo.Record {
	r := new(kgo.Record)
	for range 1 + random.IntN(2) {
		for _, name := range names {
			r.Headers = append(r.Headers, kgo.RecordHeader{Key: spelled(random, name),
				Value: []byte{byte('a' + random.IntN(4))}})
		}
	}
	return r
}

func spelled(random *rand.Rand, name string) string {
	switch random.IntN(4) {
	case 0:
		return name
	case 1:
		return strings.ToLower(name)
	}
	letters := []byte(name)
	for i := range letters {
		if random.IntN(2) == 0 {
			letters[i] = strings.ToUpper(name[i : i+1])[0]
		} else {
			letters[i] = strings.ToLower(name[i : i+1])[0]
		}
	}
	return string(letters)
}

func idOf(t *testing.T, e dedup.Extractor, r *kgo.Record) dedup.ID {
	t.Helper()
	id, missing := e.Extract(r)
	if missing != dedup.NotMissing {
		t.Fatalf("no ID: %v", missing)
	}
	return id
}
