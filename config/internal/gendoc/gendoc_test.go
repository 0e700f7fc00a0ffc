package main

import (
	"bytes"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/kdedup/kdedup/config"
)

func TestReferenceIsUpToDate(t *testing.T) {
	want, err := generate("../..")
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile("../../../docs/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(want, got) {
		t.Error("docs/configuration.md differs from the comments, defaults or examples; run: go " +
			"generate ./config")
	}
}

func TestTheSchemaIsUpToDate(t *testing.T) {
	want, err := generateSchema("../..")
	if err != nil {
		t.Fatal(err)
	}
	if got := config.Schema(); !bytes.Equal(want, got) {
		t.Error("config/schema.json differs from the comments or types; run: go generate ./config")
	}
	replay := regexp.MustCompile(`"on_replay": \{\s+"anyOf": \[\s+\{\s+"enum": \[\s+"forward",\s+` +
		`"drop"\s+\]`)
	if !replay.Match(want) {
		t.Error("the schema does not say that on_replay is forward or drop, and nothing else")
	}
}

func TestEverySettingNeedsAManual(t *testing.T) {
	_, err := manual{}.entry("Topic", "TTL")
	if want := "Topic.TTL has no comment; write its manual"; err == nil || err.Error() != want {
		t.Errorf("entry: %v, want %s", err, want)
	}
}

func TestManualIsTakenApart(t *testing.T) {
	m := manual{"Topic.Scope": "Required. Where it is.\nMore.\n\nDefault: the input topic."}
	got, err := m.entry("Topic", "Scope")
	if want := (entry{"Where it is.\nMore.", "the input topic", true}); err != nil || got != want {
		t.Errorf("entry: %+v, %v, want %+v", got, err, want)
	}
}

func TestReferenceShowsEachSettingOnce(t *testing.T) {
	text, err := generate("../..")
	if err != nil {
		t.Fatal(err)
	}
	for _, heading := range []string{
		"## Top level", "## `kafka.tls`, `kafka.output.tls`, `store.cassandra.tls`, " +
			"`store.redis.tls`, `store.postgres.tls`, " +
			"`schema_registry.tls`, `metrics.otlp.tls`, `tracing.tls`", "### `topics[].ttl`",
		"### `topics[].message_id.parts`",
	} {
		if n := strings.Count(string(text), "\n"+heading+"\n"); n != 1 {
			t.Errorf("%q stands %d times, want once", heading, n)
		}
	}
	for _, line := range []string{
		"### `topics[].ttl`\n\nduration; default: `168h`",
		"### `instance`\n\ndefault: the host name",
		"### `kafka.sasl.password`\n\nsecret",
	} {
		if !strings.Contains(string(text), "\n"+line+"\n") {
			t.Errorf("the reference lacks the line %q", line)
		}
	}
	if strings.Contains(string(text), "`topics[].-") {
		t.Error("the reference shows a field that the file does not have")
	}
}
