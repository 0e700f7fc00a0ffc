package charts

import (
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/yaml"
)

// with is a shape's values with others laid over them, as by a second --values.
func with(t *testing.T, shape, text string) map[string]any {
	t.Helper()
	return layOver(t, valuesOf(t, shape), text)
}

func layOver(t *testing.T, values map[string]any, text string) map[string]any {
	t.Helper()
	var over map[string]any
	if err := yaml.UnmarshalStrict([]byte(text), &over); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return loader.MergeMaps(values, over)
}

func mustQuantity(t *testing.T, shape string) resource.Quantity {
	t.Helper()
	size := map[string]string{"default": "10Gi", "embedded": "50Gi"}[shape]
	return resource.MustParse(size)
}

// refusal is values that must not be installed, and what is said about them.
type refusal struct{ shape, values, want string }

func (c refusal) check(t *testing.T) {
	t.Helper()
	_, err := render(loadChart(t), "shop", with(t, c.shape, c.values))
	if err == nil || !strings.Contains(err.Error(), c.want) {
		t.Errorf("%s with %s:\ngot  %v\nwant %s", c.shape, c.values, err, c.want)
	}
}

func TestWhatCannotWorkIsRefusedWithAReason(t *testing.T) {
	for _, c := range []refusal{
		{"default", "config: {kafka: {brokers: []}}", "config.kafka.brokers is required"},
		{"default", "config: {topics: []}", "config.topics is required"},
		{"default", "config: {instance: a}", "config.instance must not be set"},
		{"default", "config: {server: {listen: '127.0.0.1:9480'}}",
			"config.server.listen must not be set"},
		{"default", "config: {store: {type: '${STORE}'}}", "config.store.type must be written out"},
		{"default", "config: {shutdown_timeout: '${STOP}'}",
			"config.shutdown_timeout must be written out"},
		{"embedded", "replicas: 3", "replicas must be 1, got 3"},
		{"embedded", "replicas: 0", "replicas must be 1, got 0"},
		{"embedded", "kind: Deployment", "the embedded store needs kind: StatefulSet"},
		{"embedded", "autoscaling: {enabled: true}", "cannot be scaled"},
		{"default", "config: {store: {type: embedded, embedded: {path: ./data}}}",
			"must lie under /var/lib/kdedup/"},
		{"ha", "kind: Deployment", "config.topics[0].static_membership needs kind: StatefulSet"},
		{"default", "extraEnv: [{name: KDEDUP_INSTANCE, value: a}]",
			"extraEnv must not hold KDEDUP_INSTANCE"},
		{"default", "extraEnv: [{name: KDEDUP_SERVER_LISTEN, value: a}]",
			"extraEnv must not hold KDEDUP_SERVER_LISTEN"},
		{"default", "extraEnv: [{name: KDEDUP_STORE_TYPE, value: cassandra}]",
			"set config.store.type, the chart reads it"},
		{"default", "extraEnv: [{name: KDEDUP_TRACING_ENDPOINT, value: a}]",
			"set config.tracing.endpoint, the chart reads it"},
		{"everything", "config: {tracing: {endpoint: '${COLLECTOR}'}}",
			"config.tracing.endpoint must be written out with networkPolicy.egress"},
		{"everything", "config: {metrics: {otlp: {endpoint: '${COLLECTOR}'}}}",
			"config.metrics.otlp.endpoint must be written out with networkPolicy.egress"},
		{"everything", "config: {metrics: {otlp: {headers: [{name: a, value: hunter2}]}}}",
			"config.metrics.otlp.headers[0].value must not be written out"},
		{"everything", "config: {kafka: {brokers: ['${BROKER}']}}",
			"autoscaling needs config.kafka written out"},
		{
			"everything", "config: {topics: [{input: '${IN}', output: o, consumer_group: g, " +
				"message_id: {from: key}}]}",
			"autoscaling needs config.topics[0] written out",
		},
	} {
		c.check(t)
	}
}

func TestTheSchemaRefusesTypingErrors(t *testing.T) {
	for _, c := range []refusal{
		{"default", "replica: 1", "additional properties 'replica' not allowed"},
		{"default", "image: {tags: a}", "at '/image': additional properties 'tags' not allowed"},
		{"default", "config: {topic: []}",
			"at '/config': additional properties 'topic' not allowed"},
		{"default", "config: {kafka: {broker: []}}",
			"at '/config/kafka': additional properties 'broker' not allowed"},
		{
			"default", "config: {topics: [{inputs: a}]}",
			"at '/config/topics/0': additional properties 'inputs' not allowed",
		},
		{
			"default", "config: {topics: [{message_id: {form: key}}]}",
			"at '/config/topics/0/message_id': additional properties 'form' not allowed",
		},
		{"default", "extraEnv: [{nam: a}]", "at '/extraEnv/0'"},
		{"default", "extraEnv: [{name: A, valueFrom: {secretRef: {name: a}}}]",
			"additional properties 'secretRef' not allowed"},
		{"default", "tolerations: [{keys: a}]",
			"at '/tolerations/0': additional properties 'keys' not allowed"},
		{"default", "affinity: {antiAffinity: {}}",
			"at '/affinity': additional properties 'antiAffinity' not allowed"},
		{"default", "extraVolumes: [{name: config}]", "at '/extraVolumes/0/name'"},
	} {
		c.check(t)
	}
}

func TestTheSchemaRefusesWrongTypes(t *testing.T) {
	for _, c := range []refusal{
		{"default", "replicas: one", "at '/replicas': got string, want integer"},
		{"default", "replicas: -1", "at '/replicas': minimum: got -1, want 0"},
		{"default", "kind: DaemonSet",
			"at '/kind': value must be one of 'StatefulSet', 'Deployment'"},
		{"default", "image: {pullPolicy: Sometimes}",
			"at '/image/pullPolicy': value must be one of"},
		{"default", "image: {digest: abc}", "at '/image/digest': 'abc' does not match pattern"},
		{"default", "podMonitor: {enabled: 'yes'}",
			"at '/podMonitor/enabled': got string, want boolean"},
		{"default", "podAnnotations: {a: 1}", "at '/podAnnotations/a': got number, want string"},
		{"default", "extraEnv: [{name: A, value: 1}]",
			"at '/extraEnv/0/value': got number, want string"},
		{"default", "config: {shutdown_timeout: 30}",
			"at '/config/shutdown_timeout': got number, want string"},
		{"default", "config: {shutdown_timeout: 30 s}",
			"at '/config/shutdown_timeout': '30 s' does not match pattern"},
		{"default", "config: {topics: {}}", "at '/config/topics': got object, want array"},
		{"default", "config: {kafka: {brokers: 1}}", "at '/config/kafka/brokers'"},
		{"default", "config: {kafka: {tls: {enabled: 'yes'}}}",
			"at '/config/kafka/tls/enabled': 'yes' does not match pattern"},
		{"default", "config: {store: {cassandra: {in_flight: many}}}",
			"'many' does not match pattern"},
		{"default", "persistence: {size: 10 GB}",
			"at '/persistence/size': '10 GB' does not match pattern"},
		{"default", "fullnameOverride: Not_A_Name", "at '/fullnameOverride'"},
		{"default", "autoscaling: {minReplicas: 0}",
			"at '/autoscaling/minReplicas': minimum: got 0, want 1"},
	} {
		c.check(t)
	}
}

func TestTheSchemaTakesReferencesForEverySetting(t *testing.T) {
	for _, text := range []string{
		"config: {kafka: {tls: {enabled: '${TLS}'}}}",
		"config: {store: {type: cassandra, cassandra: {in_flight: '${N}', timeout: '${T}'}}}",
		"config: {kafka: {brokers: '${BROKERS}'}}",
		"config: {x-anchors: {a: 1}}",
		"{global: {a: 1}, enabled: true}",
	} {
		if _, err := render(loadChart(t), "shop", with(t, "default", text)); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
}
