package command

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/twmb/avro"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/internal/testkit"
)

const (
	orderV1 = `{"type":"record","name":"Order","fields":[{"name":"customer","type":"string"},` +
		`{"name":"order_id","type":"string"},{"name":"amount","type":"int"}]}`
	orderV2 = `{"type":"record","name":"Order","fields":[{"name":"channel","type":["null","string"]},` +
		`{"name":"customer","type":"string"},{"name":"order_id","type":"string"},` +
		`{"name":"amount","type":"int"}]}`
	orderProto = `syntax = "proto3"; message Head { int32 n = 1; } ` +
		`message Order { string customer = 1; string order_id = 2; int32 amount = 3; }`
)

// schemaServer is a registry of every type, with two versions of one schema: by the numbers 7 and
// 8, and by UUIDs that end with these.
type schemaServer struct{ first, second, kind string }

func (s schemaServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	asked := r.URL.Path + string(body)
	format := map[string]string{"": "AVRO", "PROTOBUF": "PROTOBUF", "JSON": "JSON"}[s.kind]
	text := s.second
	switch {
	case strings.HasSuffix(asked, "/references"):
		fmt.Fprint(w, "[]")
		return
	case strings.HasSuffix(strings.TrimRight(asked, `"}`), "7"):
		text = s.first
	case strings.HasSuffix(strings.TrimRight(asked, `"}`), "8"), strings.Contains(asked, "latest"),
		strings.Contains(asked, "LatestVersion"):
	default:
		w.WriteHeader(http.StatusNotFound)
		fmt.Fprint(w, `{"error_code":40403,"message":"none"}`)
		return
	}
	answer, _ := json.Marshal(map[string]any{"schema": text, "schemaType": s.kind,
		"SchemaDefinition": text, "DataFormat": format})
	if strings.Contains(asked, "/apis/registry/") || strings.Contains(asked, "$schemas") {
		answer = []byte(text)
	}
	_, _ = w.Write(answer)
}

// serializedOrders are 200 orders and 20 copies of them, under two versions of their schema.
func serializedOrders(
	t *testing.T, frame func(version int, body []byte) *kgo.Record,
) (records []*kgo.Record) {
	t.Helper()
	var schemas [2]*avro.Schema
	for i, text := range []string{orderV1, orderV2} {
		var err error
		if schemas[i], err = avro.Parse(text); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 200 {
		order := map[string]any{"customer": fmt.Sprint("c", i%7), "amount": int32(i % 50),
			"order_id": fmt.Sprintf("0a12c11d-71fa-4a2d-a02e-%012x", i), "channel": nil}
		for n := range 1 + (9-i%10)/9 {
			version := (i / 10 * n) % 2
			body, err := schemas[version].Encode(order)
			if err != nil {
				t.Fatal(err)
			}
			records = append(records, frame(version, body))
		}
	}
	return records
}

func header(name string, value []byte) []kgo.RecordHeader {
	return []kgo.RecordHeader{{Key: name, Value: value}}
}

func number(version, bytes int) []byte {
	eight := binary.BigEndian.AppendUint64(nil, uint64(7+version))
	return eight[8-bytes:]
}

func uuidBytes(version int) []byte {
	return append(make([]byte, 15), byte(7+version))
}

// framings are all by which serializers name the schema of Avro.
var framings = map[string]struct {
	kind  string // of the registry, where --registry alone does not say it
	wants string // in the file
	frame func(version int, body []byte) *kgo.Record
}{
	"confluent": {"", "type: confluent", func(version int, body []byte) *kgo.Record {
		return &kgo.Record{Value: append(append([]byte{0}, number(version, 4)...), body...)}
	}},
	"confluent header": {"", "type: confluent", func(version int, body []byte) *kgo.Record {
		return &kgo.Record{Value: body, Headers: header("__value_schema_id",
			append([]byte{1}, uuidBytes(version)...))}
	}},
	"both of confluent": {"", "type: confluent", func(version int, body []byte) *kgo.Record {
		if version == 0 {
			return &kgo.Record{Value: append(append([]byte{0}, number(version, 4)...), body...)}
		}
		return &kgo.Record{Value: body, Headers: header("__value_schema_id",
			append([]byte{1}, uuidBytes(version)...))}
	}},
	"apicurio header": {"", "type: apicurio", func(version int, body []byte) *kgo.Record {
		return &kgo.Record{Value: body, Headers: header("apicurio.value.contentId",
			number(version, 8))}
	}},
	"apicurio": {"apicurio", "type: apicurio", func(version int, body []byte) *kgo.Record {
		return &kgo.Record{Value: append(append([]byte{0}, number(version, 4)...), body...)}
	}},
	"apicurio 2": {"apicurio", "id_bytes: 8", func(version int, body []byte) *kgo.Record {
		return &kgo.Record{Value: append(append([]byte{0}, number(version, 8)...), body...)}
	}},
	"glue": {"", "type: glue", func(version int, body []byte) *kgo.Record {
		return &kgo.Record{Value: append(append([]byte{3, 0}, uuidBytes(version)...), body...)}
	}},
	"azure": {"", "type: azure", func(version int, body []byte) *kgo.Record {
		return &kgo.Record{Value: body, Headers: header("content-type",
			fmt.Appendf(nil, "avro/binary+%x", uuidBytes(version)))}
	}},
}

func produceThem(t *testing.T, brokers []string, records []*kgo.Record) (topic string) {
	t.Helper()
	topic = testkit.Topic(t, brokers, "orders", 1, nil)
	for _, r := range records {
		r.Topic = topic
	}
	if err := testkit.KafkaClient(t, brokers).ProduceSync(t.Context(), records...).
		FirstErr(); err != nil {
		t.Fatal(err)
	}
	return topic
}

// initIsValid runs init, and then setup and validate by its file.
func initIsValid(t *testing.T, brokers []string, topic string, flags ...string) string {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, "kdedup.yaml")
	t.Setenv("KDEDUP_STORE_EMBEDDED_PATH", filepath.Join(dir, "data"))
	t.Setenv("KDEDUP_SERVER_LISTEN", "127.0.0.1:0")
	code, text := kdedup(t.Context(), append([]string{"init", "--brokers",
		strings.Join(brokers, ","), "--topic", topic, "--store", "embedded", "--output", path},
		flags...)...)
	file, _ := os.ReadFile(path) // there is none if it failed
	if code != 0 {
		t.Fatalf("exit code %d: %s", code, text)
	}
	for _, command := range []string{"setup", "validate"} {
		if code, text := kdedup(t.Context(), command, "-c", path); code != 0 {
			t.Fatalf("%s: exit code %d: %s\n%s", command, code, text, file)
		}
	}
	return string(file)
}

func withAWS(t *testing.T) {
	t.Helper()
	for _, name := range []string{"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"} {
		t.Setenv(name, "sesame")
	}
	t.Setenv("AWS_REGION", "eu-central-1")
}

func TestInitReadsTheSchemasOfEachFraming(t *testing.T) {
	withAWS(t)
	_, brokers := testkit.FakeKafka(t)
	server := httptest.NewServer(schemaServer{first: orderV1, second: orderV2})
	t.Cleanup(server.Close)
	for name, f := range framings {
		t.Run(name, func(t *testing.T) {
			topic := produceThem(t, brokers, serializedOrders(t, f.frame))
			flags := []string{"--registry", server.URL}
			if f.kind != "" {
				flags = append(flags, "--registry-type", f.kind)
			}
			file := initIsValid(t, brokers, topic, flags...)
			for _, want := range []string{"message_id: {from: avro, path: order_id}", f.wants,
				"fingerprint: none", "20 copies with the same"} {
				if !strings.Contains(strings.ReplaceAll(file, "\n    #", ""), want) {
					t.Errorf("%q is missing in\n%s", want, file)
				}
			}
			code, text := kdedup(t.Context(), append([]string{"report", "--brokers", brokers[0],
				"--topic", topic}, flags...)...)
			if code != 0 || !strings.Contains(text, "9.1 % of 220 records are copies") {
				t.Errorf("report: exit code %d: %s", code, text)
			}
		})
	}
}

func TestInitReadsSchemasOfFiles(t *testing.T) {
	_, brokers := testkit.FakeKafka(t)
	var files []string
	var prints [2][]byte
	for i, text := range []string{orderV1, orderV2} {
		path := filepath.Join(t.TempDir(), fmt.Sprintf("order-%d.avsc", i))
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		files = append(files, path)
		schema, err := avro.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		body, err := schema.AppendSingleObject(nil, map[string]any{"customer": "", "amount": 1,
			"order_id": "", "channel": nil})
		if err != nil {
			t.Fatal(err)
		}
		prints[i] = body[:10]
	}
	topic := produceThem(t, brokers, serializedOrders(t,
		func(version int, body []byte) *kgo.Record {
			return &kgo.Record{Value: append(append([]byte{}, prints[version]...), body...)}
		}))
	file := initIsValid(t, brokers, topic, "--registry-type", "files", "--schemas",
		strings.Join(files, ","))
	if !strings.Contains(file, "message_id: {from: avro, path: order_id}") ||
		!strings.Contains(file, "type: files") {
		t.Errorf("init wrote\n%s", file)
	}
}

func TestInitReadsProtobufAndJSONBehindSchemas(t *testing.T) {
	withAWS(t)
	_, brokers := testkit.FakeKafka(t)
	for kind, row := range map[string]struct {
		text, want string
		body       func(i int) []byte
	}{
		"PROTOBUF": {orderProto, "{from: protobuf, path: order_id}", func(i int) []byte {
			return fmt.Appendf(nil, "\x01\x0a\x01c\x12\x06order%c\x18\x01", 'A'+i)
		}},
		"JSON": {`{"type":"object"}`, "{from: json_schema, path: order_id}", func(i int) []byte {
			return fmt.Appendf(nil, `{"order_id":"order-%d","amount":%d}`, i, i%3)
		}},
	} {
		server := httptest.NewServer(schemaServer{row.text, row.text, kind})
		t.Cleanup(server.Close)
		var records []*kgo.Record
		for i := range 40 {
			body := row.body(i % 36)
			records = append(records, &kgo.Record{
				Value: append(append([]byte{3, 0}, uuidBytes(0)...), body...)})
		}
		file := initIsValid(t, brokers, produceThem(t, brokers, records), "--registry", server.URL)
		if !strings.Contains(file, row.want) || !strings.Contains(file, "type: glue") {
			t.Errorf("init wrote\n%s", file)
		}
	}
}

// A field that the newest schema lacks is none to propose, however many records have it.
func TestInitProposesNothingThatValidateRefuses(t *testing.T) {
	_, brokers := testkit.FakeKafka(t)
	random := rand.New(rand.NewPCG(46, 6))
	for range 6 {
		renamed := []string{"order_id", "customer", "amount", "none"}[random.IntN(4)]
		newest := strings.Replace(orderV2, `"`+renamed+`"`, `"renamed"`, 1)
		old := schemaServer{first: orderV1, second: orderV2}
		server := httptest.NewServer(newestServer{old, newest})
		topic := produceThem(t, brokers, serializedOrders(t, framings["confluent"].frame))
		if renamed == "order_id" {
			code, text, _ := initAt(t, brokers, topic, "--registry", server.URL)
			if strings.Contains(text, "message ID {from: avro, path: order_id}") ||
				!strings.Contains(text, "has no field order_id") {
				t.Errorf("exit code %d: %s", code, text)
			}
			code, text, _ = initAt(t, brokers, topic, "--registry", server.URL, "--id",
				"avro:order_id")
			if code != 2 || !strings.Contains(text, "--id: message_id: subject "+topic+"-value") {
				t.Errorf("--id: exit code %d: %s", code, text)
			}
		} else {
			initIsValid(t, brokers, topic, "--registry", server.URL)
		}
		server.Close()
	}
}

// newestServer has a newer schema than those of the records.
type newestServer struct {
	schemaServer
	newest string
}

func (s newestServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if strings.HasSuffix(r.URL.Path, "latest") {
		s.second = s.newest
	}
	s.schemaServer.ServeHTTP(w, r)
}

func TestInitSaysWhatIsWrongWithTheRegistry(t *testing.T) {
	_, brokers := testkit.FakeKafka(t)
	topic := produceThem(t, brokers, serializedOrders(t, framings["confluent"].frame))
	gone := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(gone.Close)
	empty := httptest.NewServer(schemaServer{first: `{"type":`, second: `{"type":`})
	t.Cleanup(empty.Close)
	for _, row := range []struct {
		flags []string
		want  string
	}{
		{[]string{"--registry", gone.URL}, "there is no schema registry at this URL"},
		{[]string{"--registry", "localhost:8081"}, "schema_registry.urls is set by --registry"},
		{[]string{"--registry", empty.URL}, "can be read by the schemas that they name"},
		{[]string{"--id", "avro:order_id"}, "name their registry by --registry"},
		{nil, "let kdedup init look by --registry"},
	} {
		code, text, _ := initAt(t, brokers, topic, row.flags...)
		if code == 0 || !strings.Contains(text, row.want) {
			t.Errorf("%v: exit code %d, want %q: %s", row.flags, code, row.want, text)
		}
	}
}

func TestInitAsksForTheRegistryOnATerminal(t *testing.T) {
	_, brokers := testkit.FakeKafka(t)
	server := httptest.NewServer(schemaServer{first: orderV1, second: orderV2})
	t.Cleanup(server.Close)
	topic := produceThem(t, brokers, serializedOrders(t, framings["confluent"].frame))
	path := filepath.Join(t.TempDir(), "kdedup.yaml")
	var out testkit.Printed
	cmd := newInit(func(io.Reader) bool { return true })
	cmd.SetArgs([]string{"--output", path})
	cmd.SetIn(strings.NewReader(strings.Join([]string{brokers[0], topic, "oracle", "",
		"http://127.0.0.1:1", "confluent", server.URL, "", "", "embedded"}, "\n")))
	cmd.SetOut(&out)
	if err := cmd.ExecuteContext(t.Context()); err != nil {
		t.Fatalf("%v:\n%s", err, out.String())
	}
	for _, want := range []string{"the value stands behind the ID of a schema", `got "oracle"`,
		"URL of the schema registry [http://localhost:8081]", "connection refused",
		"Avro field order_id"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is missing in\n%s", want, out.String())
		}
	}
	if file, err := os.ReadFile(path); err != nil ||
		!strings.Contains(string(file), "path: order_id") {
		t.Errorf("%v: init wrote\n%s", err, file)
	}
}
