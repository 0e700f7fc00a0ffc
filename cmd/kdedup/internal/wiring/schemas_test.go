package wiring

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/kdedup/kdedup/config"
)

func TestTheNewestSchemaMustHaveTheField(t *testing.T) {
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
	defer server.Close()
	c := config.Default()
	c.SchemaRegistry.URLs = []string{server.URL}
	schemas, err := Schemas(c, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer schemas.Close()
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
