package charts

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/kdedup/kdedup/config"
)

// outside is a file that says of everything the chart relies on something else.
const outside = `
instance: file
shutdown_timeout: 5m
kafka: {brokers: ["kafka:9092"]}
server: {listen: "127.0.0.1:1"}
store: {type: embedded, embedded: {path: /elsewhere}}
topics:
  - input: orders
    output: orders.clean
    consumer_group: orders-dedup
    message_id: {from: key}
    dead_letter_topic: orders.dlq
`

// loadOutside reads the file as the first container of the pods would.
func loadOutside(t *testing.T, p pods) config.Config {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kdedup.yaml")
	if err := os.WriteFile(path, []byte(outside), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := config.Load(path, environmentOf(shape{}, p))
	if err != nil || len(c.UnknownEnv) > 0 {
		t.Fatalf("%v, unknown %v", err, c.UnknownEnv)
	}
	return c
}

func TestAFileFromOutsideGivesWayWhereThePodsDependOnIt(t *testing.T) {
	for _, c := range []struct {
		values, store, path string
		claims              int
	}{
		{"config: {}", "kafka", "/var/lib/kdedup/index", 0},
		{"config: {store: {type: embedded}}", "embedded", "/var/lib/kdedup/store", 1},
		{"config: {store: {type: embedded, embedded: {path: /var/lib/kdedup/x}}}", "embedded",
			"/var/lib/kdedup/x", 1},
		{"config: {store: {type: kafka}, shutdown_timeout: 1m}", "kafka", "/var/lib/kdedup/index",
			0},
	} {
		values := layOver(t, nil, "{setup: {enabled: true}, configFrom: {configMap: theirs}}")
		r := mustRender(t, loadChart(t), layOver(t, values, c.values))
		if _, made := configMap(r, "shop-kdedup"); made || len(find[*corev1.ConfigMap](r)) > 0 {
			t.Errorf("%s: the chart makes a ConfigMap beside that of somebody else", c.values)
		}
		for _, p := range readers(r) {
			if used := references(p); !slices.Contains(used, "ConfigMap theirs") {
				t.Errorf("%s uses %v", p.owner.GetName(), used)
			}
			loaded := loadOutside(t, p)
			path := loaded.Store.Embedded.Path
			if loaded.Store.Type == "kafka" {
				path = loaded.Store.Kafka.Path
			}
			if loaded.Server.Listen != "0.0.0.0:9480" || string(loaded.Store.Type) != c.store ||
				path != c.path {
				t.Errorf("%s, %s: listens on %s, store %s at %s", c.values, p.owner.GetName(),
					loaded.Server.Listen, loaded.Store.Type, path)
			}
		}
		p := workload(t, r)
		grace := time.Duration(*p.template.Spec.TerminationGracePeriodSeconds) * time.Second
		if loaded := loadOutside(t, p); loaded.ShutdownTimeout+15*time.Second != grace {
			t.Errorf("the grace period is %v, shutdown_timeout %v", grace, loaded.ShutdownTimeout)
		}
		if len(p.claims) != c.claims {
			t.Errorf("%s: %d claims", c.values, len(p.claims))
		}
	}
}

func TestAFileFromOutsideMayBeASecret(t *testing.T) {
	r := mustRender(t, loadChart(t), layOver(t, nil, "configFrom: {secret: theirs}"))
	for _, p := range readers(r) {
		if used := references(p); !slices.Contains(used, "Secret theirs") {
			t.Errorf("%s uses %v", p.owner.GetName(), used)
		}
	}
}

func TestAFileFromOutsideIsTheOnlyOne(t *testing.T) {
	const both, one = "configFrom: {configMap: a, secret: b}", "configFrom: {configMap: a}"
	for values, want := range map[string]string{
		both: "must name a ConfigMap or a Secret, not both",
		one:  "config.kafka.brokers must not be set with configFrom",
		"{" + one + ", autoscaling: {enabled: true}}": "autoscaling needs brokers",
	} {
		refusal{"default", values, want}.check(t)
	}
	_, err := render(loadChart(t), "shop", layOver(t, nil,
		"{configFrom: {secret: a}, config: {shutdown_timeout: '${T}'}}"))
	if err == nil {
		t.Error("a variable would override the file with the text ${T}")
	}
}

func TestTheClaimOfTheEmbeddedStoreMayExist(t *testing.T) {
	r := mustRender(t, loadChart(t), with(t, "embedded", "persistence: {existingClaim: old}"))
	p := workload(t, r)
	if set := find[*appsv1.StatefulSet](r)[0]; len(set.Spec.VolumeClaimTemplates) != 0 {
		t.Error("the StatefulSet makes a claim all the same")
	}
	if !slices.Contains(references(p), "PersistentVolumeClaim old") {
		t.Errorf("the pods use %v", references(p))
	}
	store := slices.IndexFunc(p.template.Spec.Volumes,
		func(v corev1.Volume) bool { return v.PersistentVolumeClaim != nil })
	mounts := p.template.Spec.Containers[0].VolumeMounts
	if at := slices.IndexFunc(mounts, func(m corev1.VolumeMount) bool {
		return m.Name == p.template.Spec.Volumes[store].Name
	}); at < 0 || mounts[at].MountPath != "/var/lib/kdedup" {
		t.Errorf("the claim is mounted at %+v", mounts)
	}
}
