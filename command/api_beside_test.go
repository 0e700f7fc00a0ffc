package command

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/internal/testkit"
)

// withAPI is write, with an API at an address.
func withAPI(t *testing.T, brokers []string, address string) (path string) {
	t.Helper()
	path = write(t, brokers, ordersTopic)
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	text = fmt.Appendf(text, "api: {listen: %q, scopes: [{name: mails}], keys: {path: %q}}\n",
		address, t.TempDir())
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

const (
	judgePath  = "/kdedup.v1.ClaimService/Judge"
	mailsOrder = `{"scope": "mails", "messages": [{"id": "%s", "place": {"text": "%s"}}]}`
)

func wantVerdict(t *testing.T, url, id, place, want string) {
	t.Helper()
	status, answer := callAPI(t, url+judgePath, "", fmt.Sprintf(mailsOrder, id, place))
	if status != http.StatusOK || !strings.Contains(answer, want) {
		t.Errorf("%s at %s: %d %s, want %s", id, place, status, answer, want)
	}
}

func TestTheAPIAnswersBesideThePipelinesFromTheirStore(t *testing.T) {
	_, brokers := testkit.FakeKafka(t, kfake.SeedTopics(1, "orders"))
	taken, err := net.Listen("tcp", "127.0.0.1:0") // for now
	if err != nil {
		t.Fatal(err)
	}
	path := withAPI(t, brokers, taken.Addr().String())
	if code, text := kdedup(t.Context(), "setup", "-c", path); code != 0 {
		t.Fatal(text)
	}
	r := start(t, path)
	page := r.url()
	testkit.Eventually(t, time.Minute, "the reason in /readyz", func() bool {
		return strings.Contains(get(t, page+"/readyz"), "api: api.listen: listen tcp")
	})
	client, err := kgo.NewClient(kgo.SeedBrokers(brokers...))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	forwarded := func(n int) {
		t.Helper()
		for range 2 {
			record := &kgo.Record{Topic: "orders", Key: fmt.Appendf(nil, "%d", n)}
			if err := client.ProduceSync(t.Context(), record).FirstErr(); err != nil {
				t.Fatal(err)
			}
		}
		want := fmt.Sprintf(`kdedup_records_total{outcome="duplicate",topic="orders"} %d`, n)
		testkit.Eventually(t, time.Minute, want, func() bool {
			return strings.Contains(get(t, page+"/metrics"), want)
		})
	}
	forwarded(1) // the API fails, and stops nothing
	if err := taken.Close(); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, time.Minute, "readiness", func() bool {
		return strings.Contains(get(t, page+"/readyz"), "api: ok")
	})
	url := "http://" + taken.Addr().String()
	wantVerdict(t, url, "a", "1", "VERDICT_FIRST")
	wantVerdict(t, url, "a", "2", "VERDICT_DUPLICATE")
	wantVerdict(t, url, "1", "1", "VERDICT_FIRST") // the scope of the topic is another one
	forwarded(2)
	testkit.Eventually(t, time.Minute, "the API on the page", func() bool {
		text := get(t, page+"/api/status")
		return strings.Contains(text, url) && !strings.Contains(text, `"state":"waiting"`)
	})
	if text := get(t, page+"/metrics"); !strings.Contains(text, "kdedup_api_up 1") {
		t.Error("kdedup_api_up is not 1")
	}
	r.stopsWell()
}

func TestTheAPIAnswersWhileThePipelinesCannotBegin(t *testing.T) {
	_, brokers := testkit.FakeKafka(t, kfake.SeedTopics(1, "orders"))
	for name, path := range map[string]string{
		"nobody at the brokers": withAPI(t, []string{nobody(t)}, "127.0.0.1:0"),
		"no setup":              withAPI(t, brokers, "127.0.0.1:0"),
	} {
		t.Run(name, func(t *testing.T) {
			r := start(t, path)
			url := urlAfter(t, &r.out, " url")
			wantVerdict(t, url, "a", "1", "VERDICT_FIRST")
			testkit.Eventually(t, time.Minute, "that the pipelines failed", func() bool {
				return strings.Contains(r.out.String(), "trying again")
			})
			wantVerdict(t, url, "a", "1", "VERDICT_MINE")
			wantVerdict(t, url, "b", "1", "VERDICT_FIRST") // the store is still open
			r.stopsWell()
		})
	}
}

// Without its store the API cannot answer either: nothing is left to wait for.
func TestAStartWhoseStoreIsRefusedEndsDespiteTheAPI(t *testing.T) {
	_, brokers := testkit.FakeKafka(t, kfake.SeedTopics(1, "orders"))
	path := withAPI(t, brokers, "127.0.0.1:0")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "embedded: {path: ")
	var directory string
	if _, err := fmt.Sscanf(rest, "%q", &directory); err != nil {
		t.Fatalf("%v in:\n%s", err, text)
	}
	if err := os.WriteFile(directory, []byte("no directory"), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, said := kdedup(t.Context(), "run", "-c", path); code != 1 ||
		!strings.Contains(said, directory) {
		t.Errorf("exit code %d:\n%s", code, said)
	}
}
