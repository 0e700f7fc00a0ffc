package command

import (
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kdedup/kdedup/internal/testkit"
)

const idKey = "KDEDUP_TOPICS_0_MESSAGE_ID_HMAC_KEY"

// address is a message ID that is personal data.
func address(n int) string { return fmt.Sprintf("ann-%d@example.com", n) }

// addresses of which some stand there more than once.
func addresses(seed uint64) []string {
	random := rand.New(rand.NewPCG(seed, 30))
	all := []string{address(0), address(0)}
	for range 300 {
		all = append(all, address(random.IntN(120)))
	}
	return all
}

func TestTheCleanTopicIsTheSameWithKeyedIDs(t *testing.T) {
	_, brokers := testkit.FakeKafka(t)
	for seed := range uint64(2) {
		var clean [][]string
		for _, key := range []string{"", "a key of more than 16 bytes"} {
			t.Setenv(idKey, key)
			input := testkit.Topic(t, brokers, "orders", 1, nil)
			directory := t.TempDir()
			p := newPlace(t, brokers, input, directory, "")
			sent := addresses(seed)
			p.produce(input, sent...)
			p.runUntil(int64(len(sent)))
			clean = append(clean, p.clean())
			shown := strings.Contains(filesIn(t, directory), "@example.com")
			if shown != (key == "") {
				t.Errorf("with the key %q the store shows IDs: %v", key, shown)
			}
		}
		if len(clean[0]) < 50 || !slices.Equal(clean[0], clean[1]) {
			t.Errorf("without a key %v\nwith a key %v", clean[0], clean[1])
		}
	}
}

func TestAKeyedIDIsFoundByItsTextAndStoredNowhere(t *testing.T) {
	_, brokers := testkit.FakeKafka(t)
	file := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(file, []byte("a key of more than 16 bytes\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv(idKey, "file:"+file)
	t.Setenv("KDEDUP_LOG_LEVEL", "debug")
	input, directory := testkit.Topic(t, brokers, "orders", 1, nil), t.TempDir()
	p := newPlace(t, brokers, input, directory, "    duplicates_topic: "+input+".duplicates\n")
	sent := addresses(7)
	p.produce(input, sent...)
	r := start(t, p.path)
	base := r.url()
	testkit.Eventually(t, time.Minute, "the records", func() bool {
		return strings.Contains(get(t, base+"/metrics"), fmt.Sprintf(
			`kdedup_records_total{outcome="duplicate",topic=%q} %d`, input,
			len(sent)-len(p.clean())))
	})
	var status string
	var stored []string
	testkit.Eventually(t, time.Minute, "the keyed ID of a copy on the page", func() bool {
		status = get(t, base+"/api/status")
		stored = regexp.MustCompile(`"id": ?"(686d61633a[0-9a-f]{64})"`).FindStringSubmatch(status)
		return stored != nil
	})
	for _, form := range []url.Values{{"id": {address(0)}}, {"id": {stored[1]}, "hex": {"on"}}} {
		form.Set("topic", input)
		answer, err := http.PostForm(base+"/api/lookup", form)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(answer.Body)
		answer.Body.Close()
		http.DefaultClient.CloseIdleConnections()
		if text := string(body); err != nil || !strings.Contains(text, `"seen":true`) {
			t.Errorf("%v: %v: %s", form, err, text)
		}
	}
	r.stopsWell()

	p.must(0, "forwarded    yes", "id lookup", address(0))
	p.must(0, `"seen":true`, "id lookup", "--json", "--hex", hex.EncodeToString([]byte(address(0))))
	p.must(0, `"seen":true`, "id lookup", "--json", "--hex", stored[1])
	p.must(0, "no: the next copy", "id lookup", "bob@example.com")
	p.must(0, "", "id claim", "--yes", "bob@example.com")
	p.must(0, "", "id release", "--yes", address(0))
	before := len(p.clean())
	p.produce(input, address(0), "bob@example.com", address(0))
	p.runUntil(int64(len(sent) + 3))
	if clean := p.clean(); len(clean) != before+1 || clean[before] != address(0) {
		t.Errorf("behind a claim and a release %v came", clean[before:])
	}

	for what, text := range map[string]string{"the log": r.out.String(), "the page": status,
		"the store": filesIn(t, directory)} {
		for _, secret := range []string{"@example.com", "a key of more"} {
			if strings.Contains(text, secret) {
				t.Errorf("%s shows %q", what, secret)
			}
		}
	}

	t.Setenv(idKey, "another key of 16 bytes and more")
	p.must(1, "message_id was hmac:", "validate")
	p.must(1, "message_id was hmac:", "run")
	t.Setenv(idKey, "")
	p.must(1, "and is now key", "run")
	t.Setenv(idKey, "short")
	p.must(2, "topics[0].message_id.hmac_key (KDEDUP_TOPICS_0_MESSAGE_ID_HMAC_KEY): must be at "+
		"least 16 bytes, got 5; make one with openssl rand -hex 32", "validate")
}

func filesIn(t *testing.T, directory string) string {
	t.Helper()
	var all strings.Builder
	err := filepath.WalkDir(directory, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := os.ReadFile(name)
		all.Write(content)
		return err
	})
	if err != nil || all.Len() == 0 {
		t.Fatalf("%d bytes in the store: %v", all.Len(), err)
	}
	return all.String()
}
