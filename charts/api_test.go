package charts

import (
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/labels"
)

const withAPI = `
api: {enabled: true}
config:
  api:
    scopes: [{name: mails}]
    callers: [{name: mailer, token: "${MAILER}", scopes: [mails]}]
    tls: {cert_file: /etc/api/tls.crt, key_file: /etc/api/tls.key}
`

func TestTheAPIHasAServiceOfItsOwn(t *testing.T) {
	r := mustRender(t, loadChart(t), with(t, "deployment", withAPI))
	var found *corev1.Service
	for _, s := range find[*corev1.Service](r) {
		if strings.HasSuffix(s.Name, "-api") {
			found = s
		}
	}
	if found == nil {
		t.Fatal("there is no Service for the API")
	}
	if found.Spec.ClusterIP == "None" || !found.Spec.PublishNotReadyAddresses {
		t.Errorf("the Service is %+v", found.Spec)
	}
	template := workload(t, r).template
	if !labels.SelectorFromSet(found.Spec.Selector).Matches(labels.Set(template.Labels)) {
		t.Error("the Service selects none of the pods")
	}
	ports := make(map[string]int32)
	for _, p := range template.Spec.Containers[0].Ports {
		ports[p.Name] = p.ContainerPort
	}
	if want := map[string]int32{"http": 9480, "api": 9481}; !maps.Equal(ports, want) {
		t.Errorf("ports %v, want %v", ports, want)
	}
	if !strings.Contains(find[*corev1.ConfigMap](r)[0].Data["kdedup.yaml"],
		"listen: 0.0.0.0:9481") {
		t.Error("the API listens to no other pod")
	}
}

func TestCallersComeFromTheNamespaceUnlessTheValuesSayOtherwise(t *testing.T) {
	from := func(values string) []networkingv1.NetworkPolicyPeer {
		r := mustRender(t, loadChart(t), with(t, "deployment", values))
		for _, rule := range find[*networkingv1.NetworkPolicy](r)[0].Spec.Ingress {
			if rule.Ports[0].Port.String() == "api" {
				return rule.From
			}
		}
		return nil
	}
	if got := from("{}"); got != nil {
		t.Errorf("without an API the policy admits %v", got)
	}
	got := from(withAPI)
	if len(got) != 1 || got[0].PodSelector == nil || got[0].NamespaceSelector != nil {
		t.Errorf("the policy admits %v, want the pods of the namespace", got)
	}
	other := strings.Replace(withAPI, "enabled: true",
		"enabled: true, ingressFrom: [{ipBlock: {cidr: 10.0.0.0/8}}]", 1)
	want := []networkingv1.NetworkPolicyPeer{{IPBlock: &networkingv1.IPBlock{CIDR: "10.0.0.0/8"}}}
	if diff := cmp.Diff(want, from(other)); diff != "" {
		t.Errorf("peers (-want +got):\n%s", diff)
	}
}

func TestAnAPIThatWouldBeOpenOrAnswerInTwoWaysIsRefused(t *testing.T) {
	const keys = "    keys: {path: /var/lib/kdedup/keys}\nreplicas: 2\n"
	open := strings.Replace(withAPI, "cert_file: /etc/api/tls.crt, ", "", 1)
	for values, want := range map[string]string{
		"api: {enabled: true}": "config.api.scopes is required",
		"{api: {enabled: true}, config: {api: {scopes: [{name: a}]}}}": "config.api.callers is",
		open:                                "config.api.tls.cert_file",
		withAPI + "    listen: 0.0.0.0:1\n": "config.api.listen must not",
		withAPI + keys:                      "type: store with more than one replica",
	} {
		_, err := render(loadChart(t), "kdedup", with(t, "deployment", values))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", values, err, want)
		}
	}
}
