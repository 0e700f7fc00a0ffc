package server

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/kdedup/kdedup/internal/certs"
)

// box has one letter, and notes what it is asked for.
type box struct {
	asked  []string
	sent   bool
	unkept []string
}

func (b *box) Find(_ context.Context, q LetterQuery) (FoundLetters, error) {
	b.asked = append(b.asked, "find "+q.Topic)
	conflict := Letter{Partition: 1, Offset: 5,
		Source: "orders[3]@812", At: noon, Why: "conflict", Differs: "the value in total",
		ID: "o-17", Key: "k", Value: "<script>alert(1)</script>",
		Headers: []Row{{"trace", "t-1"}}, Ways: Ways{AsConflict: true}}
	if b.sent {
		conflict.Sent, conflict.Ways = "sent to orders.clean", Ways{}
	}
	return FoundLetters{From: q.Topic + ".dlq", Looked: 7, All: []Letter{conflict,
		{Offset: 6, At: noon, Opaque: true, Key: "null"},
		{Offset: 7, At: noon, Why: "missing_id_absent", Key: "k",
			Ways: Ways{First: "correct message_id first"}}}}, nil
}

func (b *box) Redrive(_ context.Context, q LetterQuery, r Redrive) (string, bool, error) {
	b.asked, b.sent = append(b.asked, "redrive "+q.Topic), true
	return "sent", true, nil
}

func (b *box) Reasons() []string { return []string{"conflict", "missing_id"} }

func (b *box) Unkept() []string { return b.unkept }

func lettersServer(t *testing.T, local bool, change func(*Options)) (*box, string) {
	t.Helper()
	o, s := scripted(t, 1)
	b := &box{}
	o.Letters, o.Gatherer = b, prometheus.NewRegistry()
	change(&o)
	server := httptest.NewServer(protect(o, local, &prober{checks: o.Checks, clean: Cleaner(nil)},
		routes(o, local, s, Cleaner([]string{"secret"}))))
	t.Cleanup(server.Close)
	return b, server.URL
}

// A letter is a whole record: who may not change claims does not read it either.
func TestLettersAreForWhomIDsMayBeChangedBy(t *testing.T) {
	for name, c := range map[string]struct {
		local  bool
		change func(*Options)
		code   int
	}{
		"on this machine":           {true, func(*Options) {}, http.StatusOK},
		"elsewhere without a login": {false, func(*Options) {}, http.StatusForbidden},
		"on this machine behind a proxy": {true,
			func(o *Options) { o.Hosts = []string{"a.example"} }, http.StatusForbidden},
		"elsewhere without the password": {false,
			func(o *Options) { o.Auth = Auth{"a", "b"} }, http.StatusUnauthorized},
		"elsewhere without a certificate": {false,
			func(o *Options) { o.TLS = certs.ServerFiles{ClientCAFile: "ca"} },
			http.StatusForbidden},
		"with look-ups off": {true, func(o *Options) { o.Lookup = false }, http.StatusNotFound},
	} {
		t.Run(name, func(t *testing.T) {
			b, base := lettersServer(t, c.local, c.change)
			form := url.Values{"topic": {"orders"}, "partition": {"1"}, "offset": {"5"},
				"into": {"clean"}}
			for _, path := range []string{"/letters", "/redrive"} {
				answer, err := http.PostForm(base+path, form)
				if err != nil {
					t.Fatal(err)
				}
				answer.Body.Close()
				if answer.StatusCode != c.code {
					t.Errorf("%s answers %s, want %d", path, answer.Status, c.code)
				}
			}
			if asked := len(b.asked) > 0; asked != (c.code == http.StatusOK) {
				t.Errorf("it was asked for %q", b.asked)
			}
		})
	}
}

func TestPagesOfOtherSitesCannotSendLetters(t *testing.T) {
	b, base := lettersServer(t, true, func(*Options) {})
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, base+"/redrive",
		strings.NewReader("topic=orders&partition=1&offset=5&into=clean"))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	request.Header.Set("Sec-Fetch-Site", "cross-site")
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusForbidden || len(b.asked) > 0 {
		t.Errorf("%s, and it was asked for %q", answer.Status, b.asked)
	}
}

func TestTheDuplicatesTopicIsOfferedWhereThereIsOne(t *testing.T) {
	for name, c := range map[string]struct {
		unkept  []string
		offered bool
		want    string
	}{
		"all are kept":  {nil, true, ""},
		"some are kept": {[]string{"orders"}, true, "Dropped copies of orders are kept nowhere"},
		"none are kept": {[]string{"orders", "refunds"}, false, "Dropped copies are kept nowhere"},
		"many have none": {slices.Repeat([]string{"a"}, 7), false,
			"Dropped copies are kept nowhere"},
	} {
		b, base := lettersServer(t, true, func(*Options) {})
		b.unkept = c.unkept
		answer, err := http.Get(base + "/letters")
		if err != nil {
			t.Fatal(err)
		}
		page, err := io.ReadAll(answer.Body)
		answer.Body.Close()
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(page), ">the duplicates topic<") != c.offered ||
			!strings.Contains(string(page), c.want) ||
			strings.Contains(string(page), "kept nowhere") != (c.want != "") {
			t.Errorf("%s: the page is:\n%s", name, page)
		}
	}
}

// A script gets no page, whatever the answer is.
func TestAScriptThatSendsLettersIsAnsweredWithJSON(t *testing.T) {
	for want, local := range map[string]bool{`{"said":"sent"}`: true,
		`{"error":"letters, `: false} {
		_, base := lettersServer(t, local, func(*Options) {})
		answer, err := http.PostForm(base+"/redrive", url.Values{"topic": {"orders"},
			"partition": {"1"}, "offset": {"5"}, "into": {"clean"}})
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(answer.Body)
		answer.Body.Close()
		if err != nil || !strings.HasPrefix(string(text), want) {
			t.Errorf("%v: %s, want %s", err, text, want)
		}
	}
}
