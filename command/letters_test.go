package command

import (
	"fmt"
	"html"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/internal/testkit"
)

// postForm sends a form of the page, and returns the page that answers, as people read it.
func postForm(t *testing.T, address string, form url.Values) (code int, page string) {
	t.Helper()
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	answer, err := client.PostForm(address, form)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, html.UnescapeString(bodyOf(t, answer))
}

// An operator finds a conflict and a record without an ID on the page of the running process, whose
// embedded store nobody else can open, reads them, and sends the one that is right.
func TestLettersAreReadFoundAndSentOnThePage(t *testing.T) {
	_, brokers := testkit.FakeKafka(t)
	topic := testkit.Topic(t, brokers, "orders", 1, nil)
	path := write(t, brokers, fmt.Sprintf(`
  - {input: %s, output: %[1]s.clean, dead_letter_topic: %[1]s.dlq, consumer_group: %[1]s.dedup,
     on_conflict: dead_letter, duplicates_topic: %[1]s.twice,
     message_id: {from: json, path: id}}`, topic))
	if code, text := kdedup(t.Context(), "setup", "-c", path, "--skip-self-test"); code != 0 {
		t.Fatal(text)
	}
	client := testkit.KafkaClient(t, brokers)
	for _, value := range []string{`{"id":"1","total":5}`, `{"id":"1","total":6}`, `<b>none</b>`,
		`{"id":"1","total":5}`} {
		record := &kgo.Record{Topic: topic, Value: []byte(value),
			Headers: []kgo.RecordHeader{{Key: "trace", Value: []byte("t-1")}}}
		if err := client.ProduceSync(t.Context(), record).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	r := start(t, path)
	base := r.url()
	testkit.Eventually(t, time.Minute, "the letters", func() bool {
		return count(t, topic+".dlq", brokers) == 2 && count(t, topic+".twice", brokers) == 1
	})
	testkit.Eventually(t, time.Minute, "the pipeline on the page, with the way to letters",
		func() bool {
			page := get(t, base+"/")
			return strings.Contains(page, "pipeline-"+topic) &&
				strings.Contains(page, `href="letters"`)
		})
	if page := get(t, base+"/letters"); !strings.Contains(page, "Dead letters") ||
		strings.Contains(page, ".dlq[0]") {
		t.Errorf("unasked, the page shows:\n%s", page)
	}
	find := func(form url.Values, want, not []string) {
		t.Helper()
		code, page := postForm(t, base+"/letters", form)
		for _, text := range want {
			if code != http.StatusOK || !strings.Contains(page, text) {
				t.Errorf("%v: %d, %q is missing in:\n%s", form, code, text, page)
			}
		}
		for _, text := range not {
			if strings.Contains(page, text) {
				t.Errorf("%v: %q is in:\n%s", form, text, page)
			}
		}
	}
	find(url.Values{}, []string{"2 of the newest 2 records of " + topic + ".dlq", topic + "[0]@1",
		"differs from its owner in", "the value in total",
		`{"id":"1","total":6}`, "<b>none</b>", "header trace",
		"missing_id_unparsable"}, nil)
	find(url.Values{"why": {"missing_id"}}, []string{"1 of the newest 2"}, []string{`"total":6`})
	find(url.Values{"id": {"1"}}, []string{"1 of the newest 2", `"total":6`}, []string{"none"})
	find(url.Values{"id": {"31"}, "hex": {"1"}}, []string{"1 of the newest 2", `"total":6`}, nil)
	find(url.Values{"id": {"2"}}, []string{"0 of the newest 2"}, nil)
	find(url.Values{"kind": {"duplicates"}}, []string{"1 of the newest 1", "duplicate",
		"another record with this content owns its ID"}, []string{"<button name=\"into\""})
	find(url.Values{"why": {"conflict"}}, []string{`value="clean-conflict"`,
		"The clean topic has the ID twice then. The input would give it back"},
		[]string{`value="clean"`, `value="input"`})
	find(url.Values{"why": {"missing_id"}}, []string{"It cannot be sent: the configured message_id",
		"a list of places"}, []string{"<button name=\"into\""})

	send := func(offset, into, want string) {
		t.Helper()
		_, page := postForm(t, base+"/redrive", url.Values{"partition": {"0"}, "offset": {offset},
			"into": {into}})
		if !strings.Contains(page, want) {
			t.Errorf("%s into %s: %q is missing in:\n%s", offset, into, want, page)
		}
	}
	send("0", "clean", "refused, and stays where it is: another record with other content owns")
	send("0", "clean", "(into=clean-conflict) forwards it all the same")
	send("0", "clean-conflict", `{"said":"`+topic+".dlq[0]@0: sent to "+topic+".clean")
	send("0", "clean-conflict", "was redriven before, and is not sent again")
	find(url.Values{"why": {"conflict"}}, []string{"sent to " + topic + ".clean, 2"},
		[]string{"<button name=\"into\""})
	send("1", "clean", "refused, and stays where it is: the configured message_id does not find")
	send("900", "clean", "there is no letter of "+topic+" at "+topic+".dlq[0]@900")
	send("0", "elsewhere", "into must be clean, clean-conflict or input")
	send("none", "clean", "partition and offset must be those of a letter")
	var clean []string
	testkit.ReadCommitted(t, topic+".clean", func(r *kgo.Record) {
		clean = append(clean, string(r.Value))
	}, kgo.SeedBrokers(brokers...))
	if want := `{"id":"1","total":5} {"id":"1","total":6}`; strings.Join(clean, " ") != want {
		t.Errorf("the clean topic has %q", clean)
	}
	r.stopsWell()
	if n := strings.Count(r.out.String(), "a letter was redriven from the page"); n != 1 {
		t.Errorf("the log tells of %d letters that were sent, want 1", n)
	}
}

// More match than are kept while the topic is read: those that are shown are the newest.
func TestOfManyLettersTheNewestAreShown(t *testing.T) {
	const letters = 2100
	_, brokers := testkit.FakeKafka(t)
	topic := testkit.Topic(t, brokers, "orders", 1, nil)
	path := write(t, brokers, fmt.Sprintf(`
  - {input: %s, output: %[1]s.clean, dead_letter_topic: %[1]s.dlq, consumer_group: %[1]s.dedup,
     message_id: {from: json, path: id}}`, topic))
	if code, text := kdedup(t.Context(), "setup", "-c", path, "--skip-self-test"); code != 0 {
		t.Fatal(text)
	}
	var all []*kgo.Record
	for n := range letters {
		all = append(all, &kgo.Record{Topic: topic, Value: fmt.Appendf(nil, `{"n":%d}`, n)})
	}
	for n := range 200 { // a start refuses an input whose newest records have no ID
		all = append(all, &kgo.Record{Topic: topic, Value: fmt.Appendf(nil, `{"id":"%d"}`, n)})
	}
	client := testkit.KafkaClient(t, brokers)
	if err := client.ProduceSync(t.Context(), all...).FirstErr(); err != nil {
		t.Fatal(err)
	}
	r := start(t, path)
	testkit.Eventually(t, time.Minute, "the letters", func() bool {
		return count(t, topic+".dlq", brokers) == letters
	})
	base := r.url()
	testkit.Eventually(t, time.Minute, "the pipeline on the page", func() bool {
		return strings.Contains(get(t, base+"/"), "pipeline-"+topic)
	})
	_, page := postForm(t, base+"/letters", url.Values{"why": {"missing_id"}})
	if last := fmt.Sprintf(`{"n":%d}`, letters-1); !strings.Contains(page, last) {
		t.Errorf("%s is missing in:\n%s", last, page)
	}
	r.stopsWell()
}
