package config

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestSettingsShowWhatIsInEffect(t *testing.T) {
	c := valid("orders")
	c.Kafka.Brokers = []string{"a:9092", "b:9092"}
	c.Topics[0].TTL = 48 * time.Hour
	c.Kafka.SASL.Password = "hunter2hunter2"
	shown := map[string]Setting{}
	for _, s := range c.Derived().Settings() {
		shown[s.Path] = s
	}
	for _, want := range []Setting{
		{"kafka.brokers", "a:9092, b:9092", false},
		{"kafka.sasl.password", "[hidden]", false},
		{"kafka.tls.key_file", "", true},
		{"server.lookup", "true", true},
		{"store.kafka.path", "./kdedup-index", true},
		{"topics[0].ttl", "48h0m0s", false},
		{"topics[0].lanes", "2", true},
		{"topics[0].message_id.from", "header", false},
		{"topics[0].fence_topic", "orders-dedup.fence", false},
	} {
		if diff := cmp.Diff(want, shown[want.Path]); diff != "" {
			t.Errorf("%s (-want +got):\n%s", want.Path, diff)
		}
	}
	for path := range shown {
		if strings.HasPrefix(path, "store.") && path != "store.type" &&
			!strings.HasPrefix(path, "store.kafka.") && !strings.HasPrefix(path, "store.keepers.") {
			t.Errorf("%s is shown, but the store in use is kafka", path)
		}
	}
}

// fill puts a text of its own into every text field, so that each secret can be told apart.
func fill(value reflect.Value, path string) {
	for key, field := range keys(value.Type()) {
		inner := value.FieldByIndex(field.Index)
		switch at := join(path, key); {
		case inner.Kind() == reflect.Struct:
			fill(inner, at)
		case inner.Kind() == reflect.String:
			inner.SetString("text of " + at)
		}
	}
}

func TestSettingsHideEverySecretAndSecretsListsThem(t *testing.T) {
	c := valid("orders")
	c.Tracing.Headers = []OTLPHeader{{"authorization", "text of tracing.headers[0].value"}}
	c.Metrics.OTLP.Headers = []OTLPHeader{
		{"authorization", "text of metrics.otlp.headers[0].value"}}
	c.API.Callers = []APICaller{{Token: "text of api.callers[0].token"}}
	fill(reflect.ValueOf(&c).Elem(), "")
	hiddenPaths := []string{
		"api.callers[0].token", "api.tls.key_file",
		"kafka.output.sasl.oauth.client_secret", "kafka.output.sasl.password",
		"kafka.output.tls.key_file", "kafka.sasl.oauth.client_secret", "kafka.sasl.password",
		"kafka.tls.key_file",
		"metrics.otlp.headers[0].value", "metrics.otlp.tls.key_file",
		"schema_registry.oauth.client_secret", "schema_registry.password",
		"schema_registry.tls.key_file",
		"schema_registry.token", "server.auth.password", "server.tls.key_file",
		"store.cassandra.password", "store.cassandra.tls.key_file",
		"store.keepers.secret", "store.keepers.tls.key_file",
		"store.postgres.password", "store.postgres.tls.key_file",
		"store.redis.password", "store.redis.sentinel_password", "store.redis.tls.key_file",
		"tracing.headers[0].value", "tracing.tls.key_file",
	}
	var want []string
	for _, path := range hiddenPaths {
		want = append(want, "text of "+path)
	}
	if diff := cmp.Diff(want, c.Secrets()); diff != "" {
		t.Errorf("Secrets (-want +got):\n%s", diff)
	}
	for _, kind := range []string{StoreCassandra, StorePostgres} {
		c.Store.Type = kind
		for _, s := range c.Settings() {
			if slices.Contains(hiddenPaths, s.Path) != (s.Value == "[hidden]") {
				t.Errorf("%s: %s is shown as %q", kind, s.Path, s.Value)
			}
		}
	}
}
