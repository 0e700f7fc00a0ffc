package charts

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"

	kedav1alpha1 "github.com/kedacore/keda/v2/apis/keda/v1alpha1"
	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

// types are all that the chart and its documents may hold.
var types = map[metav1.TypeMeta]func() metav1.Object{
	{APIVersion: "v1", Kind: "ConfigMap"}:      made[corev1.ConfigMap],
	{APIVersion: "v1", Kind: "Pod"}:            made[corev1.Pod],
	{APIVersion: "v1", Kind: "Secret"}:         made[corev1.Secret],
	{APIVersion: "v1", Kind: "Service"}:        made[corev1.Service],
	{APIVersion: "v1", Kind: "ServiceAccount"}: made[corev1.ServiceAccount],
	{APIVersion: "v1",
		Kind: "PersistentVolumeClaim"}: made[corev1.PersistentVolumeClaim],
	{APIVersion: "apps/v1", Kind: "Deployment"}:  made[appsv1.Deployment],
	{APIVersion: "apps/v1", Kind: "StatefulSet"}: made[appsv1.StatefulSet],
	{APIVersion: "batch/v1", Kind: "Job"}:        made[batchv1.Job],
	{APIVersion: "policy/v1",
		Kind: "PodDisruptionBudget"}: made[policyv1.PodDisruptionBudget],
	{APIVersion: "networking.k8s.io/v1",
		Kind: "NetworkPolicy"}: made[networkingv1.NetworkPolicy],
	{APIVersion: "monitoring.coreos.com/v1", Kind: "PodMonitor"}: made[monitoringv1.PodMonitor],
	{APIVersion: "monitoring.coreos.com/v1",
		Kind: "ServiceMonitor"}: made[monitoringv1.ServiceMonitor],
	{APIVersion: "monitoring.coreos.com/v1",
		Kind: "PrometheusRule"}: made[monitoringv1.PrometheusRule],
	{APIVersion: "keda.sh/v1alpha1",
		Kind: "ScaledObject"}: made[kedav1alpha1.ScaledObject],
	{APIVersion: "keda.sh/v1alpha1",
		Kind: "TriggerAuthentication"}: made[kedav1alpha1.TriggerAuthentication],
}

func made[T any, P interface {
	*T
	metav1.Object
}]() metav1.Object {
	return P(new(T))
}

var separator = regexp.MustCompile(`(?m)^---\s*$`)

func decodeAll(text string) ([]metav1.Object, error) {
	var objects []metav1.Object
	for _, document := range separator.Split(text, -1) {
		o, err := decode(document)
		if err != nil {
			return nil, fmt.Errorf("%w in:\n%s", err, document)
		}
		if o != nil {
			objects = append(objects, o)
		}
	}
	return objects, nil
}

// decode is stricter than the API server by default: unknown fields, fields in the wrong case and
// duplicates are errors. An empty document is nil.
func decode(document string) (metav1.Object, error) {
	text, err := yaml.YAMLToJSONStrict([]byte(document))
	if err != nil || string(text) == "null" {
		return nil, err
	}
	var kind metav1.TypeMeta
	if err := kjson.UnmarshalCaseSensitivePreserveInts(text, &kind); err != nil {
		return nil, err
	}
	newObject, known := types[kind]
	if !known {
		return nil, fmt.Errorf("no type for %s %s", kind.APIVersion, kind.Kind)
	}
	o := newObject()
	strict, err := kjson.UnmarshalStrict(text, o)
	return o, errors.Join(append(strict, err)...)
}

func TestDecodingIsStrict(t *testing.T) {
	for text, want := range map[string]string{
		"{apiVersion: v1, kind: Pod, spec: {nodename: a}}":         `unknown field "spec.nodename"`,
		"{apiVersion: v1, kind: Pod, spec: {hostname: [a]}}":       "cannot unmarshal array",
		"apiVersion: v1\nkind: Pod\nkind: Pod":                     "already set",
		"{apiVersion: v2, kind: Pod}":                              "no type for v2 Pod",
		"{apiVersion: keda.sh/v1alpha1, kind: ScaledObject, x: 1}": `unknown field "x"`,
	} {
		if _, err := decodeAll(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", text, err, want)
		}
	}
}
