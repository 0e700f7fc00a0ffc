package connect

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"

	"github.com/kdedup/kdedup/config"
	"github.com/kdedup/kdedup/dedup/messageid/registry"
)

// schemasOfOrders has orders-value and other, of a record O with a field id.
func schemasOfOrders(t *testing.T) *registry.Client {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/subjects/orders-value/versions/latest", "/subjects/other/versions/latest":
			fmt.Fprint(w, `{"schema":"{\"type\":\"record\",\"name\":\"O\",\"fields\":[`+
				`{\"name\":\"id\",\"type\":\"string\"}]}"}`)
		case "/subjects/locked/versions/latest":
			w.WriteHeader(http.StatusForbidden)
		default:
			w.WriteHeader(http.StatusNotFound)
			fmt.Fprint(w, `{"error_code":40401,"message":"Subject not found"}`)
		}
	}))
	t.Cleanup(server.Close)
	c := config.Default()
	c.SchemaRegistry.URLs = []string{server.URL}
	schemas, err := Schemas(c, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(schemas.Close)
	return schemas
}

func TestTheNewestSchemaMustHaveTheField(t *testing.T) {
	schemas := schemasOfOrders(t)
	avro := func(path, part, subject string) config.MessageID {
		return config.MessageID{From: config.FromAvro, Path: path, Part: part, Subject: subject}
	}
	for _, row := range []struct {
		name string
		id   config.MessageID
		want string
		warn string
	}{
		{"the topic's subject", avro("id", "", ""), "", ""},
		{"a named subject", avro("id", "", "other"), "", ""},
		{"a path that is not there", avro("nope", "", ""),
			"message_id: subject orders-value: the schema has no such field: record O has no " +
				"field nope", ""},
		{"in a part", config.MessageID{From: config.FromFirstOf, Parts: []config.MessageID{
			{From: config.FromKey}, avro("nope", "", "")}}, "message_id.parts[1]: subject", ""},
		{"another kind", config.MessageID{From: config.FromProtobuf, Path: "id"},
			"it is of type avro, not protobuf", ""},
		{"no subject by the topic's name", avro("id", "key", ""), "",
			"name it by message_id.subject"},
		{"no subject by the name that was given", avro("id", "", "gone"),
			"subject gone: the schema registry has no such subject", ""},
		{"no right", avro("id", "", "locked"), "allow this user to read the subjects", ""},
		{"no schema needed", config.MessageID{From: config.FromKey}, "", ""},
	} {
		var told strings.Builder
		e := Entry{Topic: config.Topic{Input: "orders", MessageID: row.id}}
		err := e.CheckSchemas(t.Context(), schemas, slog.New(slog.NewTextHandler(&told, nil)))
		if (err == nil) != (row.want == "") ||
			err != nil && !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s: %v, want %q", row.name, err, row.want)
		}
		if (told.Len() > 0) != (row.warn != "") || !strings.Contains(told.String(), row.warn) {
			t.Errorf("%s: told %q, want %q", row.name, &told, row.warn)
		}
	}
}

func TestTheNewestSchemaMustHaveWhatCounts(t *testing.T) {
	schemas := schemasOfOrders(t)
	content := func(c config.Fingerprint) config.Topic { return config.Topic{Fingerprint: c} }
	for _, row := range []struct {
		name  string
		entry config.Topic
		want  string
	}{
		{"a condition", config.Topic{OnlyIf: config.Condition{From: config.FromAvro, Path: "nope"}},
			"only_if: subject orders-value: the schema has no such field"},
		{"fields that count", content(config.Fingerprint{Only: []string{"id", "nope"},
			Format: config.FormatAvro}), "fingerprint.only: subject orders-value: the schema has"},
		{"fields that do not", content(config.Fingerprint{Ignore: []string{"nope"},
			Format: config.FormatAvro}), ""},
		{"JSON", content(config.Fingerprint{Only: []string{"nope"}}), ""},
		{"as the message ID", config.Topic{MessageID: config.MessageID{From: config.FromAvro,
			Path: "id"}, Fingerprint: config.Fingerprint{Only: []string{"nope"}}},
			"fingerprint.only: subject orders-value: the schema has"},
		{"a hash", config.Topic{MessageID: config.MessageID{From: config.FromValueHash,
			Format: config.FormatAvro, Only: []string{"nope"}}},
			"message_id.only: subject orders-value: the schema has"},
		{"a hash in a part", config.Topic{MessageID: config.MessageID{From: config.FromFirstOf,
			Parts: []config.MessageID{{From: config.FromKey}, {From: config.FromValueHash,
				Format: config.FormatAvro, Only: []string{"nope"}}}}},
			"message_id.parts[1].only: subject orders-value: the schema has"},
	} {
		e := Entry{Topic: row.entry}
		e.Input = "orders"
		err := e.CheckSchemas(t.Context(), schemas, slog.New(slog.DiscardHandler))
		if (err == nil) != (row.want == "") ||
			err != nil && !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s: %v, want %q", row.name, err, row.want)
		}
	}
}

// Glue's serializers give the schemas of a topic's keys and values one name.
func TestASchemaOfGlueMayStandBehindANewerOneOfTheOtherPart(t *testing.T) {
	record := func(field string) string {
		return fmt.Sprintf(`{"type":"record","name":"O","fields":[{"name":%q,"type":"string"}]}`,
			field)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var asked struct{ SchemaVersionNumber struct{ VersionNumber int } }
		if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
			t.Error(err)
		}
		text, number := record("total"), 2 // the newest, of the values
		if asked.SchemaVersionNumber.VersionNumber == 1 {
			text, number = record("id"), 1
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"SchemaDefinition": text,
			"DataFormat": "AVRO", "VersionNumber": number})
	}))
	defer server.Close()
	schemas, err := registry.New(registry.Options{Type: registry.Glue, URLs: []string{server.URL},
		Glue: registry.GlueOptions{Load: func(context.Context) (aws.CredentialsProvider, string,
			error) {
			return credentials.NewStaticCredentialsProvider("AKID", "sesame", ""), "eu-central-1",
				nil
		}}})
	if err != nil {
		t.Fatal(err)
	}
	defer schemas.Close()
	for _, row := range []struct{ path, part, subject, want string }{
		{"total", config.PartValue, "", ""},
		{"id", config.PartKey, "", ""},
		{"nope", config.PartKey, "", "message_id: subject orders: the schema has no such field"},
		{"id", config.PartKey, "orders", "message_id: subject orders: the schema has no such field"},
	} {
		e := Entry{Topic: config.Topic{Input: "orders", MessageID: config.MessageID{
			From: config.FromAvro, Path: row.path, Part: row.part, Subject: row.subject}}}
		err := e.CheckSchemas(t.Context(), schemas, slog.New(slog.DiscardHandler))
		if (err == nil) != (row.want == "") ||
			err != nil && !strings.Contains(err.Error(), row.want) {
			t.Errorf("%+v: %v", row, err)
		}
	}
}
