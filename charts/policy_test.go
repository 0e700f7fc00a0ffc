package charts

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	networkingv1 "k8s.io/api/networking/v1"
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

func TestThePolicyAdmitsTheCollectorOfTraces(t *testing.T) {
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
	r := mustRender(t, loadChart(t), with(t, "everything", "networkPolicy: {egress: []}"))
	if types := find[*networkingv1.NetworkPolicy](r)[0].Spec.PolicyTypes; slices.Contains(types,
		networkingv1.PolicyTypeEgress) {
		t.Error("without rules for it egress is restricted")
	}
}
