package main

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestTheDocumentIsUpToDate(t *testing.T) {
	want, err := generate()
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile("../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(want, got) {
		t.Error("docs/metrics.md differs from the metrics or their questions; run: go generate " +
			"./command/gendoc")
	}
}

func TestEveryFamilyNeedsAQuestion(t *testing.T) {
	families, err := register()
	if err != nil {
		t.Fatal(err)
	}
	_, err = render(append(families, family{name: "kdedup_new_total"}))
	if want := "without a question: kdedup_new_total"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	_, err = render(families[1:])
	if err == nil || !strings.Contains(err.Error(), families[0].name+
		" has a question and is not registered") {
		t.Errorf("got %v", err)
	}
}

func TestADescriptionIsTakenApart(t *testing.T) {
	desc := prometheus.NewDesc("things_total", `Things, "quoted".`, []string{"lane", "topic"},
		prometheus.Labels{"client_id": "a"})
	f, err := describe(desc)
	if err != nil || f.name != "things_total" || f.help != `Things, "quoted".` ||
		strings.Join(f.labels, " ") != "topic client_id lane" {
		t.Errorf("got %+v, %v", f, err)
	}
}
