package charts

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// admitted are the ports to which the policy lets the pods connect, wherever that is.
func admitted(r release) (ports []int) {
	for _, rule := range find[*networkingv1.NetworkPolicy](r)[0].Spec.Egress {
		for _, p := range rule.Ports {
			if len(rule.To) == 0 && p.Port.IntValue() != 53 {
				ports = append(ports, p.Port.IntValue())
			}
		}
	}
	return ports
}

func TestThePolicyAdmitsTheCollectors(t *testing.T) {
	for tracing, want := range map[string][]int{
		"{enabled: false}":                                                nil,
		"{enabled: true, endpoint: ''}":                                   {4318},
		"{enabled: true, endpoint: '', protocol: grpc}":                   {4317},
		"{enabled: true, endpoint: 'http://collector:9318'}":              {9318},
		"{enabled: 'true', endpoint: 'https://collector.example:1/otlp'}": {1},
		"{enabled: true, endpoint: 'https://collector.example/otlp'}":     {443},
		"{enabled: true, endpoint: 'http://[fd00::1]'}":                   {80},
	} {
		r := mustRender(t, loadChart(t), with(t, "everything", "config: {tracing: "+tracing+"}"))
		if diff := cmp.Diff(want, admitted(r)); diff != "" {
			t.Errorf("%s: ports (-want +got):\n%s", tracing, diff)
		}
	}
	for metrics, want := range map[string][]int{
		"{enabled: false}":                                        {443},
		"{enabled: true, endpoint: ''}":                           {443, 4318},
		"{enabled: true, endpoint: '', protocol: grpc}":           {443, 4317},
		"{enabled: true, endpoint: 'https://collector.example/'}": {443},
	} {
		r := mustRender(t, loadChart(t), with(t, "everything",
			"config: {metrics: {otlp: "+metrics+"}}"))
		if diff := cmp.Diff(want, admitted(r)); diff != "" {
			t.Errorf("metrics: %s: ports (-want +got):\n%s", metrics, diff)
		}
	}
	r := mustRender(t, loadChart(t), with(t, "everything", "networkPolicy: {egress: []}"))
	if types := find[*networkingv1.NetworkPolicy](r)[0].Spec.PolicyTypes; slices.Contains(types,
		networkingv1.PolicyTypeEgress) {
		t.Error("without rules for it egress is restricted")
	}
}

func TestOnlyTheTestOfTheReleaseMayConnectByDefault(t *testing.T) {
	r := mustRender(t, loadChart(t), valuesOf(t, "default"))
	policies := find[*networkingv1.NetworkPolicy](r)
	if len(policies) != 1 || len(policies[0].Spec.Ingress) != 1 ||
		len(policies[0].Spec.Ingress[0].From) != 1 {
		t.Fatalf("got %+v", policies)
	}
	spec, test := policies[0].Spec, find[*corev1.Pod](r)[0]
	if !labels.SelectorFromSet(spec.Ingress[0].From[0].PodSelector.MatchLabels).Matches(
		labels.Set(test.Labels)) {
		t.Error("the test of the release may not connect")
	}
	if !labels.SelectorFromSet(spec.PodSelector.MatchLabels).Matches(
		labels.Set(workload(t, r).template.Labels)) {
		t.Error("the policy is for other pods")
	}
}

func TestAScraperThatThePolicyWouldStopIsRefused(t *testing.T) {
	const from = "networkPolicy: {ingressFrom: [{podSelector: {}}]}"
	for name, scraper := range map[string]string{
		"podMonitor":     "podMonitor: {enabled: true}",
		"serviceMonitor": "serviceMonitor: {enabled: true}",
		"podAnnotations": "podAnnotations: {prometheus.io/scrape: 'true'}",
	} {
		refusal{"default", scraper, "networkPolicy.ingressFrom must name Prometheus with " +
			name}.check(t)
		for _, way := range []string{from, "networkPolicy: {enabled: false}"} {
			mustRender(t, loadChart(t), with(t, "default", scraper+"\n"+way))
		}
	}
	refusal{"ha", "serviceMonitor: {enabled: true}", "must not both be enabled"}.check(t)
}

func TestAServiceMonitorFindsTheServiceAsAPodMonitorFindsThePods(t *testing.T) {
	settings := valuesOf(t, "ha")
	settings["serviceMonitor"] = settings["podMonitor"]
	delete(settings, "podMonitor")
	s := find[*monitoringv1.ServiceMonitor](mustRender(t, loadChart(t), settings))[0].Spec
	r := mustRender(t, loadChart(t), valuesOf(t, "ha"))
	p := find[*monitoringv1.PodMonitor](r)[0].Spec
	service := find[*corev1.Service](r)[0]
	if !labels.SelectorFromSet(s.Selector.MatchLabels).Matches(labels.Set(service.Labels)) {
		t.Errorf("the Service has %v", service.Labels)
	}
	of, want := s.Endpoints[0], p.PodMetricsEndpoints[0]
	if of.Port != service.Spec.Ports[0].Name || of.Path != want.Path ||
		*of.Scheme != *want.Scheme {
		t.Errorf("got %+v", of)
	}
	if diff := cmp.Diff(want.BasicAuth, of.BasicAuth); diff != "" {
		t.Error(diff)
	}
	if of.TLSConfig == nil || of.TLSConfig.ServerName == nil ||
		*of.TLSConfig.ServerName != "kdedup.example" {
		t.Errorf("got %+v", of.TLSConfig)
	}
}
