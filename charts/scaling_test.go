package charts

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	kedav1alpha1 "github.com/kedacore/keda/v2/apis/keda/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
)

// KEDA reads the metadata of a trigger as texts: 1e+06 would be no number to it.
func TestKEDAWatchesTheLagOfEveryTopic(t *testing.T) {
	r := mustRender(t, loadChart(t), valuesOf(t, "everything"))
	scaled := find[*kedav1alpha1.ScaledObject](r)[0].Spec
	if *scaled.MinReplicaCount != 2 || *scaled.MaxReplicaCount != 6 {
		t.Errorf("from %d to %d replicas", *scaled.MinReplicaCount, *scaled.MaxReplicaCount)
	}
	trigger := func(topic, group, start string) map[string]string {
		return map[string]string{
			"bootstrapServers": "kafka-1:9093,kafka-2:9092", "topic": topic, "consumerGroup": group,
			"lagThreshold": "1000000", "offsetResetPolicy": start, "tls": "enable",
			"sasl": "plaintext",
		}
	}
	want := []map[string]string{
		trigger("orders", "orders-dedup", "latest"),
		trigger("payments", "payments-dedup", "earliest"),
	}
	var got []map[string]string
	for _, trigger := range scaled.Triggers {
		if trigger.Type != "kafka" {
			t.Errorf("a trigger of type %s", trigger.Type)
		}
		got = append(got, trigger.Metadata)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("triggers (-want +got):\n%s", diff)
	}
}

func TestTheBrokersMayBeOneText(t *testing.T) {
	r := mustRender(t, loadChart(t), with(t, "deployment", "autoscaling: {enabled: true}"))
	metadata := find[*kedav1alpha1.ScaledObject](r)[0].Spec.Triggers[0].Metadata
	want := map[string]string{
		"bootstrapServers": "kafka-1:9092,kafka-2:9092", "topic": "orders",
		"consumerGroup": "orders-dedup",
		"lagThreshold":  "100000", "offsetResetPolicy": "earliest",
	}
	if diff := cmp.Diff(want, metadata); diff != "" {
		t.Errorf("the trigger (-want +got):\n%s", diff)
	}
}

func TestAPodReadsFromTheReplicasOfItsZone(t *testing.T) {
	zone := func(changes string) string {
		r := mustRender(t, loadChart(t), with(t, "default", changes))
		for _, e := range workload(t, r).template.Spec.Containers[0].Env {
			if e.Name == "KDEDUP_KAFKA_RACK" {
				return e.ValueFrom.FieldRef.FieldPath
			}
		}
		return ""
	}
	if got := zone("{}"); got != "" {
		t.Errorf("by default the rack is %s", got)
	}
	if got := zone("rack: {fromZone: true}"); got !=
		"metadata.labels['topology.kubernetes.io/zone']" {
		t.Errorf("with rack.fromZone the rack is %q", got)
	}
}

// An upgrade must not set back what KEDA has decided.
func TestTheWorkloadLeavesItsSizeToKEDA(t *testing.T) {
	eachShape(t, func(t *testing.T, _ shape, r release) {
		var replicas *int32
		for _, s := range find[*appsv1.StatefulSet](r) {
			replicas = s.Spec.Replicas
		}
		for _, d := range find[*appsv1.Deployment](r) {
			replicas = d.Spec.Replicas
		}
		if scaled := len(find[*kedav1alpha1.ScaledObject](r)) > 0; scaled != (replicas == nil) {
			t.Errorf("scaled by KEDA: %t, replicas: %v", scaled, replicas)
		}
	})
}
