package messageid

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/dedup"
)

var testKey = []byte("0123456789abcdef0123456789abcdef")

// extractors are one source without a key and with it.
func extractors(t *testing.T, s Source) (plain, keyed *Extractor) {
	t.Helper()
	plain, err := New(s)
	if err == nil {
		s.HMACKey = testKey
		keyed, err = New(s)
	}
	if err != nil {
		t.Fatal(err)
	}
	return plain, keyed
}

// With a key the same records are copies of each other, and the same ones have no ID.
func TestAKeyChangesNoVerdict(t *testing.T) {
	random := rand.New(rand.NewPCG(30, 5))
	for _, s := range []Source{
		{From: "key"}, {From: "value_hash"}, {From: "json", Path: "id"},
		{From: "header", Name: "id", Normalize: []string{"trim"}},
		{From: "composite", Parts: []Source{{From: "key"}, {From: "json", Path: "id"}}},
		{From: "first_of", Parts: []Source{{From: "header", Name: "id"}, {From: "key"}}},
	} {
		plain, keyed := extractors(t, s)
		stands := map[dedup.ID]dedup.ID{}
		back := map[dedup.ID]dedup.ID{}
		for range 5000 {
			r := randomRecord(random)
			id, missing := plain.Extract(r)
			hashed, alsoMissing := keyed.Extract(r)
			if missing != alsoMissing {
				t.Fatalf("%s: %v without a key, %v with it", s.From, missing, alsoMissing)
			}
			if missing != dedup.NotMissing {
				continue
			}
			if before, known := stands[id]; known && before != hashed {
				t.Fatalf("%s: one ID has two hashes", s.From)
			}
			if before, known := back[hashed]; known && before != id {
				t.Fatalf("%s: two IDs have one hash", s.From)
			}
			stands[id], back[hashed] = hashed, id
			if len(hashed) != 37 {
				t.Fatalf("%s: %d bytes are stored", s.From, len(hashed))
			}
		}
		if len(stands) < 3 {
			t.Errorf("%s: only %d IDs were seen", s.From, len(stands))
		}
	}
}

func randomRecord(random *rand.Rand) *kgo.Record {
	ids := []string{"", "a", " a", "b", "ann@example.com", strings.Repeat("x", 5000)}
	pick := func() string { return ids[random.IntN(len(ids))] }
	r := &kgo.Record{Key: []byte(pick()), Value: []byte(`{"id":"` + pick() + `"}`)}
	if random.IntN(3) > 0 {
		r.Headers = []kgo.RecordHeader{{Key: "id", Value: []byte(pick())}}
	}
	return r
}

// Whoever has the key can find an ID without kdedup.
func TestAKeyedIDIsTheHMACOfTheID(t *testing.T) {
	plain, keyed := extractors(t, Source{From: "key"})
	mac := hmac.New(sha256.New, testKey)
	mac.Write([]byte("ann@example.com"))
	want := dedup.ID("hmac:" + string(mac.Sum(nil)))
	id, _ := keyed.Extract(&kgo.Record{Key: []byte("ann@example.com")})
	if id != want {
		t.Errorf("got %x, want %x", id, want)
	}
	for name, text := range map[string][]byte{
		"the ID": []byte("ann@example.com"), "what is stored": []byte(want),
	} {
		if got := keyed.Of(text); got != want {
			t.Errorf("a look-up of %s asks for %x", name, got)
		}
	}
	if got := plain.Of([]byte("ann@example.com")); got != "ann@example.com" {
		t.Errorf("a look-up without a key asks for %q", got)
	}
}

// The store notes which key it was, and learns nothing of it.
func TestAScopeKnowsItsKey(t *testing.T) {
	plain, keyed := extractors(t, Source{From: "key"})
	other, err := New(Source{From: "key", HMACKey: bytes.ToUpper(testKey)})
	if err != nil {
		t.Fatal(err)
	}
	if plain.String() != "key" || !strings.HasPrefix(keyed.String(), "hmac:") ||
		keyed.String() == other.String() || strings.Contains(keyed.String(), string(testKey)) {
		t.Errorf("%q, %q, %q", plain, keyed, other)
	}
	if with, err := keyed.With(Rules{Fingerprint: Content{None: true}}); err != nil ||
		with.String() != keyed.String()+dedup.FingerprintMark+"none" {
		t.Errorf("%q, %v", with, err)
	}
	if _, err := New(Source{From: "key", HMACKey: []byte("short")}); err == nil {
		t.Error("a key of 5 bytes was taken")
	}
}
