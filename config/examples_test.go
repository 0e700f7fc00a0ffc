package config

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"
)

func TestExamplesLoad(t *testing.T) {
	files, err := filepath.Glob("../examples/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no examples: %v", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			if _, err := Load(file, nil); err != nil {
				t.Error(err)
			}
		})
	}
}

// The full example says that it shows the defaults unless a comment says otherwise.
func TestFullExampleShowsDefaults(t *testing.T) {
	got, err := Load("../examples/kdedup.yaml", nil)
	if err != nil {
		t.Fatal(err)
	}
	want := valid("orders", "payments")
	want.Kafka.Brokers = []string{"kafka-1:9092", "kafka-2:9092"}
	s := withCassandra(&want)
	s.Hosts = []string{"cassandra-1:9042", "cassandra-2:9042"}
	want.Store.Redis.Addresses = []string{"redis:6379"}
	s.LocalDC, s.Replication = "dc1", "{'class': 'NetworkTopologyStrategy', 'dc1': 3}"
	// What the file shows is what empty settings mean.
	want.Tracing.Endpoint, want.Tracing.Protocol = "http://localhost:4318", OTLPOverHTTP
	want.Tracing.Headers = []OTLPHeader{{Name: "x-tenant", Value: "orders"}}
	want.Metrics.OTLP.Endpoint, want.Metrics.OTLP.Protocol = "http://localhost:4318", OTLPOverHTTP
	want.Metrics.OTLP.Headers = want.Tracing.Headers
	want.API.Scopes = []APIScope{{Name: "payments"}}
	want.API.Callers = []APICaller{{Name: "billing", Token: "not-a-real-token",
		Scopes: []string{"payments"}}}
	want.Store.Postgres.Hosts = []string{"postgres-1:5432", "postgres-2:5432"}
	want.SchemaRegistry.Type, want.SchemaRegistry.IDIn = RegistryConfluent, IDInAny
	want.Topics[0].MessageID.Occurrence = OccurrenceFirst
	want.Topics[0].MessageID.Normalize = []string{}
	want.Topics[0].MessageID.Ignore, want.Topics[0].MessageID.Only = []string{}, []string{}
	want.Topics[0].OnlyIf.Is = []string{}
	want.Topics[0].Fingerprint.Ignore, want.Topics[0].Fingerprint.Only = []string{}, []string{}
	second := &want.Topics[1]
	second.DeadLetterTopic, second.OnMissingID = "", ActionFail
	second.MessageID = MessageID{From: FromComposite, Parts: []MessageID{
		{From: FromHeader, Name: "tenant"}, {From: FromJSON, Path: "payment.id", Part: PartValue},
	}}
	third := valid("tenant").Topics[0]
	third.Input, third.Pattern = "", `tenant-.*\.orders`
	third.Output, third.ConsumerGroup = "{topic}.clean", "{topic}-dedup"
	third.DeadLetterTopic = "{topic}.dlq"
	third.Lanes = patternLanes
	want.Topics = append(want.Topics, third)
	if diff := cmp.Diff(want.Derived(), got); diff != "" {
		t.Errorf("examples/kdedup.yaml (-want +got):\n%s", diff)
	}
}

func TestFullExampleShowsEverySetting(t *testing.T) {
	data, err := os.ReadFile("../examples/kdedup.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var document yaml.Node
	if err := yaml.Unmarshal(data, &document); err != nil {
		t.Fatal(err)
	}
	// The entries of topics show the parts of message_id between them.
	shown := map[string]bool{}
	note(shown, document.Content[0], "")
	for _, path := range settingsOf(reflect.TypeFor[Config](), "") {
		if !shown[path] {
			t.Errorf("examples/kdedup.yaml lacks %s", path)
		}
	}
}

// note marks the paths of all keys; indices are left out.
func note(shown map[string]bool, node *yaml.Node, path string) {
	shown[path] = true
	switch node.Kind {
	case yaml.SequenceNode:
		for _, element := range node.Content {
			note(shown, element, path)
		}
	case yaml.MappingNode:
		for i := 0; i+1 < len(node.Content); i += 2 {
			note(shown, node.Content[i+1], join(path, node.Content[i].Value))
		}
	}
}

// settingsOf lists the paths of all keys, those of MessageID only once.
func settingsOf(of reflect.Type, path string) []string {
	var all []string
	for key, field := range keys(of) {
		inner, t := join(path, key), field.Type
		if t.Kind() == reflect.Slice {
			t = t.Elem()
		}
		if all = append(all, inner); t.Kind() == reflect.Struct && t != of {
			all = append(all, settingsOf(t, inner)...)
		}
	}
	// shown in parts
	return slices.DeleteFunc(all, func(p string) bool {
		return strings.HasSuffix(p, "message_id.path") || strings.HasSuffix(p, "message_id.part")
	})
}

// A few lines can stand for more nodes than memory holds. The check of the tree visits each once.
func TestAliasesThatMultiply(t *testing.T) {
	var file strings.Builder
	file.WriteString("x-0: &x0 [a, a, a, a, a, a, a, a, a]\n")
	for i := range 9 {
		level, below := string(rune('1'+i)), string(rune('0'+i))
		file.WriteString("x-" + level + ": &x" + level + " [" + strings.Repeat("*x"+below+", ", 9) +
			"]\n")
	}
	file.WriteString("kafka: {brokers: *x9}\n")
	p := &problems{places: map[string]string{}}
	parse([]byte(file.String()), nil, p)
	if got := p.err(); got == nil || !strings.Contains(got.Error(), "kafka.brokers") &&
		!strings.Contains(got.Error(), "excessive aliasing") {
		t.Errorf("parse: %v", got)
	}
}
