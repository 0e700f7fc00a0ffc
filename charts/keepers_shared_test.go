package charts

import (
	"strings"
	"testing"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/kdedup/kdedup/config"
)

// sharedValues have the pods of the pipelines share the claims out, without pods that only keep.
const sharedValues = `
keepers: {secret: kdedup-keepers}
networkPolicy: {egress: [{ports: [{port: 9092}]}]}
config: {store: {keepers: {keep: shared, copies: 2}}}
`

func TestPodsThatShareTheClaimsReachEachOther(t *testing.T) {
	for _, kind := range []string{"Deployment", "StatefulSet"} {
		t.Run(kind, func(t *testing.T) {
			r := mustRender(t, loadChart(t), with(t, "claimlog", sharedValues+"kind: "+kind))
			pod := pipelinePods(t, r)
			s := shape{name: "claimlog"}
			k := loadConfig(t, s, r, pod).Store.Keepers
			if k.Keep != config.KeepShared || k.Copies != 2 || k.Secret == "" ||
				k.Listen != "0.0.0.0:9482" || !strings.HasSuffix(k.Advertise, ":9482") {
				t.Errorf("the pods have %+v", k)
			}
			// Kubernetes puts in only variables that came before.
			address := ""
			for _, e := range pod.template.Spec.Containers[0].Env {
				switch {
				case e.Name == "KDEDUP_STORE_KEEPERS_ADVERTISE" && address != "status.podIP":
					t.Errorf("it advertises %s, of a variable that is from %q", e.Value, address)
				case e.Name == "POD_IP":
					address = e.ValueFrom.FieldRef.FieldPath
				}
			}
			ports := make(map[string]int32)
			for _, p := range pod.template.Spec.Containers[0].Ports {
				ports[p.Name] = p.ContainerPort
			}
			if ports["keepers"] != 9482 || ports["http"] != 9480 {
				t.Errorf("the ports are %v", ports)
			}
			policy := find[*networkingv1.NetworkPolicy](r)[0]
			from := peersOf(r, policy.Name, "keepers")
			if len(from) != 1 || from[0].NamespaceSelector != nil ||
				!selects(t, from[0].PodSelector, pod.template.Labels) {
				t.Errorf("the policy admits %v", from)
			}
			reaches := false
			for _, rule := range policy.Spec.Egress {
				for _, to := range rule.To {
					reaches = reaches || selects(t, to.PodSelector, pod.template.Labels)
				}
			}
			if !reaches {
				t.Error("the policy does not let the pods connect to each other")
			}
		})
	}
}

// pipelinePods are those that stay, beside those of the setup.
func pipelinePods(t *testing.T, r release) pods {
	t.Helper()
	for _, p := range r.pods() {
		if p.selector != nil {
			return p
		}
	}
	t.Fatal("there are no pods of pipelines")
	return pods{}
}

func selects(t *testing.T, selector *metav1.LabelSelector, found map[string]string) bool {
	t.Helper()
	s, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		t.Fatal(err)
	}
	return selector != nil && s.Matches(labels.Set(found))
}

func TestPodsThatDoNotShareHaveNoPortForIt(t *testing.T) {
	r := mustRender(t, loadChart(t), valuesOf(t, "claimlog"))
	for _, p := range pipelinePods(t, r).template.Spec.Containers[0].Ports {
		if p.Name == "keepers" {
			t.Error("a port is open that nobody asks on")
		}
	}
	if got := peersOf(r, pipelinePods(t, r).owner.GetName(), "keepers"); got != nil {
		t.Errorf("the policy admits %v", got)
	}
}

func TestSharingThatCannotWorkIsRefused(t *testing.T) {
	for values, want := range map[string]string{
		"keepers: {secret: \"\"}":                         "keepers.secret must name a Secret with config.store.keepers.keep",
		"config: {store: {keepers: {keep: none}}}":        "set keepers.enabled in its place",
		"config: {store: {keepers: {keep: only}}}":        "set keepers.enabled in its place",
		"config: {store: {keepers: {keep: \"${KEEP}\"}}}": "keep must be written out",
		"config: {store: {keepers: {listen: \":1\"}}}": "config.store.keepers.listen must " +
			"not be set",
		"config: {store: {keepers: {tls: {cert_file: /a}}}}": "config.store.keepers.tls needs " +
			"keepers.enabled",
		"extraEnv: [{name: KDEDUP_STORE_KEEPERS_KEEP, value: all}]": "set " +
			"config.store.keepers.keep, the chart reads it",
		"extraEnv: [{name: KDEDUP_STORE_KEEPERS_LISTEN, value: a}]": "extraEnv must not hold " +
			"KDEDUP_STORE_KEEPERS_LISTEN",
	} {
		_, err := render(loadChart(t), "kdedup",
			layOver(t, with(t, "claimlog", sharedValues), values))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", values, err, want)
		}
	}
}
