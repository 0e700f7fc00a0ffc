package command

import (
	"crypto/sha256"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/dedup/messageid"
	"github.com/kdedup/kdedup/internal/testkit"
)

func TestAnswersAboutAnID(t *testing.T) {
	_, brokers := testkit.FakeKafka(t, kfake.SeedTopics(1, "orders"))
	path := write(t, brokers, ordersTopic)
	if code, text := kdedup(t.Context(), "setup", "-c", path); code != 0 {
		t.Fatal(text)
	}
	client, err := kgo.NewClient(kgo.SeedBrokers(brokers...))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	r := start(t, path)
	url := r.url()
	forward := func(n string) {
		t.Helper()
		if err := client.ProduceSync(
			t.Context(), &kgo.Record{Topic: "orders", Key: []byte("a"), Value: []byte("v")},
		).FirstErr(); err != nil {
			t.Fatal(err)
		}
		testkit.Eventually(t, 2*time.Minute, n+" forwarded", func() bool {
			return strings.Contains(get(t, url+"/metrics"),
				`kdedup_records_total{outcome="forwarded",topic="orders"} `+n)
		})
	}
	forward("1")
	r.stop()
	<-r.code
	long := strings.Repeat("x", messageid.MaxBytes+1)
	stored := fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(long)))
	for _, c := range []struct {
		args []string
		code int
		text string
	}{
		{[]string{"lookup", "a"}, 0, "forwarded    yes"},
		{[]string{"lookup", "a"}, 0, "partition 0, offset 0, leader epoch 0"},
		{[]string{"lookup", "--hex", "61", "--json"}, 0, `"seen":true`},
		{[]string{"lookup", "b"}, 0, "no: the next copy will be forwarded"},
		{[]string{"claim", "a", "--yes"}, 1, "a is owned by the record at partition 0, offset 0"},
		{[]string{"release", "a"}, 1, "nothing was changed"},
		{[]string{"lookup", "a"}, 0, "yes"},
		{[]string{"release", "a", "--yes"}, 0, "a is free"},
		{[]string{"lookup", "a"}, 0, "seen   no"},
		{[]string{"release", "a", "--yes"}, 0, "a was not claimed; nothing changed"},
		{[]string{"lookup", "a", "--json"}, 0, `"owner_topic_id":null,"owner_partition":null,` +
			`"owner_offset":null,"owner_leader_epoch":null,"fingerprint":null,` +
			`"claimed_at":null,"ends":null,"sliding":false,"forwarded":null}`},
		{[]string{"lookup", "a", "--json"}, 0, `{"id":"a","hex":false,`},
		{[]string{"lookup", "--hex", "ff00", "--json"}, 0, `{"id":"ff00","hex":true,`},
		{[]string{"claim", long, "-y"}, 0, "is blocked"},
		{[]string{"lookup", stored}, 0, "claimed by hand"},
		{[]string{"lookup", "sha256:" + strings.Repeat("0", 64)}, 0, "seen   no"},
		{[]string{"release", stored, "-y"}, 0, "is free"},
		{[]string{"lookup", long}, 0, "seen   no"},
		{[]string{"claim", stored, "-y"}, 0, stored + " is blocked"},
		{[]string{"lookup", stored}, 0, "id       " + stored},
		{[]string{"claim", "b", "-y"}, 0, "b is blocked for 168h0m0s"},
		{[]string{"claim", "b", "-y"}, 0, "b is blocked"},
		{[]string{"lookup", "b"}, 0, "claimed by hand"},
		{[]string{"lookup", "--hex", "xyz"}, 2, "--hex: "},
		{[]string{"lookup", "--topic", "none", "a"}, 2,
			`--topic must be one of orders, got "none"`},
		{[]string{"lookup"}, 2, "kdedup id lookup takes one message ID, got 0: kdedup id lookup ID"},
	} {
		code, text := kdedup(t.Context(),
			append([]string{"id", c.args[0], "-c", path}, c.args[1:]...)...)
		if code != c.code || !strings.Contains(text, c.text) {
			t.Errorf("%v: exit code %d, want %d with %q:\n%s", c.args, code, c.code, c.text, text)
		}
	}
	again := start(t, path)
	url = again.url()
	forward("1")
}

// The embedded store belongs to one process, so that process answers, and changes claims.
func TestAnIDIsLookedUpAndChangedInTheProcessThatHasTheStore(t *testing.T) {
	_, brokers := testkit.FakeKafka(t, kfake.SeedTopics(1, "orders"))
	path := write(t, brokers, ordersTopic)
	if code, text := kdedup(t.Context(), "setup", "-c", path); code != 0 {
		t.Fatal(text)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	save := func(server string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(strings.Replace(string(text),
			`server: {listen: "127.0.0.1:0"}`, server, 1)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	address := nobody(t)
	protected := fmt.Sprintf("server: {listen: %q, auth: {username: ops, password: s3cr3t-words}}",
		address)
	save(protected)
	produceKeys(t, brokers, "orders", "a", "a")
	r := start(t, path)
	testkit.Eventually(t, time.Minute, "the process has the store", func() bool {
		return strings.Contains(r.out.String(), "msg=ready")
	})
	testkit.Eventually(t, time.Minute, "both are handled", func() bool {
		code, text := kdedup(t.Context(), "id", "lookup", "-c", path, "a")
		return code == 0 && strings.Contains(text, "forwarded    yes")
	})
	for _, c := range []struct {
		args []string
		code int
		text string
	}{
		{[]string{"lookup", "a"}, 0, "partition 0, offset 0"},
		{[]string{"lookup", "a", "--json"}, 0, `{"id":"a","hex":false,`},
		{[]string{"lookup", "b"}, 0, "no: the next copy will be forwarded"},
		{[]string{"lookup", "b", "--json"}, 0, `"owner_offset":null`},
		{[]string{"claim", "a", "-y"}, 1, "a is owned by the record at partition 0, offset 0"},
		{[]string{"release", "a"}, 1, "Forget a of orders?"},
		{[]string{"lookup", "a"}, 0, "partition 0, offset 0"},
		{[]string{"release", "a", "-y"}, 0, "a is free"},
		{[]string{"release", "a", "-y"}, 0, "a was not claimed; nothing changed"},
		{[]string{"lookup", "a"}, 0, "no: the next copy will be forwarded"},
		{[]string{"claim", "b", "-y"}, 0, "b is blocked for"},
		{[]string{"lookup", "b"}, 0, "claimed by hand"},
	} {
		code, text := kdedup(t.Context(),
			append([]string{"id", c.args[0], "-c", path}, c.args[1:]...)...)
		if code != c.code || !strings.Contains(text, c.text) {
			t.Errorf("%v: exit code %d, want %d with %q:\n%s", c.args, code, c.code, c.text, text)
		}
	}
	for _, c := range []struct{ server, says string }{
		{fmt.Sprintf("server: {listen: %q}", address), "401 Unauthorized: name and password"},
		{`server: {listen: "127.0.0.1:0"}`, "server.listen has no fixed port"},
		{fmt.Sprintf("server: {listen: %q}", nobody(t)), "connection refused"},
	} {
		save(c.server)
		if code, text := kdedup(
			t.Context(), "id", "lookup", "-c", path, "a",
		); code != 1 || !strings.Contains(text, c.says) {
			t.Errorf("%s: exit code %d: %s", c.server, code, text)
		}
	}
	save(protected)
	r.stopsWell()
}
