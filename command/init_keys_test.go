package command

import (
	"encoding/binary"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/internal/testkit"
)

const (
	textV1 = `"string"`
	textV2 = `{"type":"string","avro.java.string":"String"}`
	refV1  = `{"type":"record","name":"Ref","fields":[{"name":"order_id","type":"string"}]}`
	refV2  = `{"type":"record","name":"Ref","fields":[{"name":"shard","type":["null","int"]},` +
		`{"name":"order_id","type":"string"}]}`
)

// avroText is a string as Avro has it.
func avroText(text string) []byte {
	return append(binary.AppendVarint(nil, int64(len(text))), text...)
}

// keyed are 200 messages and 20 copies, of which body writes the key under two versions of its
// schema. Values are JSON that tells nothing apart.
func keyed(
	frame func(version int, body []byte) *kgo.Record, body func(version int, id string) []byte,
) (records []*kgo.Record) {
	for i := range 200 {
		for n := range 1 + (9-i%10)/9 {
			version := (i / 10 * n) % 2
			r := frame(version, body(version, fmt.Sprintf("0a12c11d-71fa-4a2d-a02e-%012x", i)))
			r.Key, r.Value = r.Value, fmt.Appendf(nil, `{"amount":%d}`, i)
			for h := range r.Headers {
				r.Headers[h].Key = strings.Replace(r.Headers[h].Key, "value", "key", 1)
			}
			records = append(records, r)
		}
	}
	return records
}

func TestInitReadsKeysOfEachFraming(t *testing.T) {
	withAWS(t)
	_, brokers := testkit.FakeKafka(t)
	for _, form := range []struct {
		first, second, want string
		body                func(version int, id string) []byte
	}{
		{textV1, textV2, `{from: avro, path: "$", part: key}`,
			func(_ int, id string) []byte { return avroText(id) }},
		{refV1, refV2, "{from: avro, path: order_id, part: key}",
			func(version int, id string) []byte {
				return append(make([]byte, version), avroText(id)...)
			}},
	} {
		server := httptest.NewServer(schemaServer{first: form.first, second: form.second})
		t.Cleanup(server.Close)
		for name, f := range framings {
			if name == "azure" { // its serializers write the header of the value over it
				continue
			}
			t.Run(form.want+name, func(t *testing.T) {
				topic := produceThem(t, brokers, keyed(f.frame, form.body))
				flags := []string{"--registry", server.URL}
				if f.kind != "" {
					flags = append(flags, "--registry-type", f.kind)
				}
				file := initIsValid(t, brokers, topic, flags...)
				for _, want := range []string{"message_id: " + form.want, f.wants,
					"20 copies with the same"} {
					if !strings.Contains(strings.ReplaceAll(file, "\n    #", ""), want) {
						t.Errorf("%q is missing in\n%s", want, file)
					}
				}
			})
		}
	}
}

// Without the schemas the key is what it is: bytes, of which the name of the schema is a part.
func TestInitSaysWhatCountsWithAKeyBehindASchema(t *testing.T) {
	_, brokers := testkit.FakeKafka(t)
	for name, row := range map[string]struct {
		want  string
		frame func(version int, body []byte) *kgo.Record
	}{
		"confluent": {"the key stands behind the ID of a schema", framings["confluent"].frame},
		"glue": {"the key begins with the header of the AWS Glue schema registry",
			framings["glue"].frame},
		"files": {"the key is in Avro's single-object encoding, which names its schema by a " +
			"fingerprint", func(version int, body []byte) *kgo.Record {
			return &kgo.Record{Value: append(append([]byte("\xC3\x01"), number(version, 8)...),
				body...)}
		}},
	} {
		topic := produceThem(t, brokers, keyed(row.frame,
			func(_ int, id string) []byte { return avroText(id) }))
		code, text, file := initAt(t, brokers, topic)
		for _, want := range []string{row.want + ". That counts with it", "With --registry"} {
			if !strings.Contains(strings.ReplaceAll(text, "\n    #", ""), want) {
				t.Errorf("%s: %q is missing in\n%s", name, want, text)
			}
		}
		if code != 0 || !strings.Contains(file, "message_id: {from: key}") {
			t.Errorf("%s: exit code %d:\n%s", name, code, file)
		}
	}
}

// Eight bytes of a number begin with a zero as well as an ID of a schema does.
func TestNumbersOfKafkasSerializersAreNoSchemas(t *testing.T) {
	_, brokers := testkit.FakeKafka(t)
	for name, first := range map[string]uint64{"counted": 1, "many": 1 << 33,
		"times": 1_700_000_000_000} {
		var records []*kgo.Record
		for i := range uint64(200) {
			records = append(records, &kgo.Record{Value: []byte(`{"amount":1}`),
				Key: binary.BigEndian.AppendUint64(nil, first+i*977)})
		}
		_, text, _ := initAt(t, brokers, produceThem(t, brokers, records))
		if strings.Contains(text, "stands behind") {
			t.Errorf("%s: init says\n%s", name, text)
		}
	}
}

func TestInitTakesAWholeValue(t *testing.T) {
	_, brokers := testkit.FakeKafka(t)
	server := httptest.NewServer(schemaServer{first: textV1, second: textV2})
	t.Cleanup(server.Close)
	for _, name := range []string{"confluent", "both of confluent", "apicurio header"} {
		records := keyed(framings[name].frame,
			func(_ int, id string) []byte { return avroText(id) })
		for _, r := range records {
			r.Key, r.Value = nil, r.Key
			for h := range r.Headers {
				r.Headers[h].Key = strings.Replace(r.Headers[h].Key, "key", "value", 1)
			}
		}
		file := initIsValid(t, brokers, produceThem(t, brokers, records), "--registry", server.URL)
		if !strings.Contains(file, `message_id: {from: avro, path: "$"}`) {
			t.Errorf("%s: init wrote\n%s", name, file)
		}
	}
	numbers := make([]*kgo.Record, 200)
	for i := range numbers {
		numbers[i] = framings["confluent"].frame(0, binary.AppendVarint(nil, int64(5000+i)))
	}
	long := httptest.NewServer(schemaServer{first: `"long"`, second: `"long"`})
	t.Cleanup(long.Close)
	_, text, _ := initAt(t, brokers, produceThem(t, brokers, numbers), "--registry", long.URL)
	for _, want := range []string{"whole value as Avro: it is a number", "the hash of the value",
		"What names the schema counts with it"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in\n%s", want, text)
		}
	}
}
