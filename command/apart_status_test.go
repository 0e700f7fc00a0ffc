package command

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/kdedup/kdedup/internal/testkit"
)

// readiness asks /readyz, whatever its status is.
func readiness(t *testing.T, url string) (code int, text string) {
	t.Helper()
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	answer, err := client.Get(url + "/readyz")
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, bodyOf(t, answer)
}

// Of two clusters the page and /readyz tell which one is away, and what lies where.
func TestThePageTellsWhichClusterIsAway(t *testing.T) {
	_, input := testkit.FakeKafka(t, kfake.SeedTopics(2, "orders"))
	cluster, output := testkit.FakeKafka(t)
	path := writeApart(t, input, output, exactApart)
	if code, text := kdedup(t.Context(), "setup", "-c", path, "--skip-self-test"); code != 0 {
		t.Fatal(text)
	}
	r := start(t, path)
	url := r.url()
	testkit.Eventually(t, time.Minute, "both clusters answer", func() bool {
		code, text := readiness(t, url)
		return code == http.StatusOK && strings.Contains(text, "cluster of the input: ok\n") &&
			strings.Contains(text, "cluster of the output: ok\n")
	})
	testkit.Eventually(t, time.Minute, "the page has both", func() bool {
		status := get(t, url+"/api/status")
		return strings.Contains(status, `"name":"input","addresses":["`+input[0]+
			`"],"cluster_id":"kfake","topics":["orders"],"state":"up"`) &&
			strings.Contains(status, `"name":"output","addresses":["`+output[0]+
				`"],"cluster_id":"kfake","topics":["orders.clean","orders.dup","orders.dlq",`+
				`"orders-dedup.fence"],"state":"up"`)
	})
	if page := get(t, url+"/"); !strings.Contains(page, "Kafka clusters") {
		t.Errorf("the page:\n%s", page)
	}
	const up, took = `kdedup_kafka_cluster_up{cluster="%s"} %d`,
		`kdedup_kafka_cluster_answer_seconds{cluster="output"}`
	for _, want := range []string{fmt.Sprintf(up, "input", 1), fmt.Sprintf(up, "output", 1), took,
		`connects_total{client_id="orders-dedup-test-0",cluster="output"`,
		`connects_total{client_id="orders-dedup-test-0-input",cluster="input"`} {
		testkit.Eventually(t, time.Minute, want, func() bool {
			return strings.Contains(get(t, url+"/metrics"), want)
		})
	}
	cluster.Close()
	testkit.Eventually(t, time.Minute, "the output is away", func() bool {
		code, text := readiness(t, url)
		return code == http.StatusServiceUnavailable &&
			strings.Contains(text, "cluster of the input: ok\n") &&
			strings.Contains(text, "cluster of the output: kafka.output.brokers: ")
	})
	metrics := get(t, url+"/metrics")
	if !strings.Contains(metrics, fmt.Sprintf(up, "input", 1)) ||
		!strings.Contains(metrics, fmt.Sprintf(up, "output", 0)) ||
		strings.Contains(metrics, took) {
		t.Errorf("the metrics tell of the clusters:\n%s", metrics)
	}
	r.stopsWell()
}

// One cluster is told of by its lanes: the page is the one that it was.
func TestThePageOfOneClusterHasNoTableOfClusters(t *testing.T) {
	_, brokers := testkit.FakeKafka(t, kfake.SeedTopics(1, "orders"))
	path := write(t, brokers, ordersTopic)
	if code, text := kdedup(t.Context(), "setup", "-c", path, "--skip-self-test"); code != 0 {
		t.Fatal(text)
	}
	r := start(t, path)
	url := r.url()
	testkit.Eventually(t, time.Minute, "it is ready", func() bool {
		code, text := readiness(t, url)
		return code == http.StatusOK && !strings.Contains(text, "cluster of")
	})
	if page := get(t, url+"/"); strings.Contains(page, "Kafka clusters") {
		t.Errorf("the page:\n%s", page)
	}
	r.stopsWell()
}
