package charts

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"

	"github.com/kdedup/kdedup/config"
)

// rolesOf are the pods of the lanes and those of the keepers.
func rolesOf(t *testing.T, r release) (lanes, keepers pods) {
	t.Helper()
	for _, p := range r.pods() {
		switch {
		case p.selector == nil:
		case strings.HasSuffix(p.owner.GetName(), "-keepers"):
			keepers = p
		default:
			lanes = p
		}
	}
	if lanes.owner == nil || keepers.owner == nil {
		t.Fatal("there are no lanes, or no keepers")
	}
	return lanes, keepers
}

func TestKeepersHaveTheVolumesAndLanesHaveNone(t *testing.T) {
	r := mustRender(t, loadChart(t), valuesOf(t, "keepers"))
	lanes, keepers := rolesOf(t, r)
	if _, is := lanes.owner.(*appsv1.Deployment); !is {
		t.Errorf("the lanes are a %T", lanes.owner)
	}
	if set, is := keepers.owner.(*appsv1.StatefulSet); !is || *set.Spec.Replicas != 3 {
		t.Errorf("the keepers are %+v", keepers.owner)
	}
	if len(keepers.claims) != 1 || len(keepers.template.Spec.Volumes) != 1 {
		t.Errorf("keepers have the claims %v and the volumes %v", keepers.claims,
			keepers.template.Spec.Volumes)
	}
	for _, v := range lanes.template.Spec.Volumes {
		if v.Name == "store" {
			t.Error("the lanes have a volume for an index")
		}
	}
	s := shape{name: "keepers"}
	asks, keeps := loadConfig(t, s, r, lanes), loadConfig(t, s, r, keepers)
	if k := asks.Store.Keepers; k.Keep != config.KeepNone || k.Copies != 2 || k.Secret == "" {
		t.Errorf("the lanes have %+v", k)
	}
	k := keeps.Store.Keepers
	if k.Keep != config.KeepOnly || k.Copies != 2 || k.Secret == "" || k.Listen != "0.0.0.0:9482" {
		t.Errorf("the keepers have %+v", k)
	}
}

// The name that a keeper tells the others is one that its Service makes.
func TestAKeeperIsReachedByItsNameAndBeforeItIsReady(t *testing.T) {
	r := mustRender(t, loadChart(t), valuesOf(t, "keepers"))
	_, keepers := rolesOf(t, r)
	name := keepers.owner.GetName()
	var service *corev1.Service
	for _, s := range find[*corev1.Service](r) {
		if s.Name == name {
			service = s
		}
	}
	if service == nil || service.Spec.ClusterIP != "None" ||
		!service.Spec.PublishNotReadyAddresses {
		t.Fatalf("the Service of the keepers is %+v", service)
	}
	set := keepers.owner.(*appsv1.StatefulSet)
	if set.Spec.ServiceName != name {
		t.Errorf("the pods have names of the Service %q, want %q", set.Spec.ServiceName, name)
	}
	want := "$(KDEDUP_INSTANCE)." + name + "." + service.Namespace + ":9482"
	var names []string
	for _, e := range keepers.template.Spec.Containers[0].Env {
		names = append(names, e.Name)
		if e.Name == "KDEDUP_STORE_KEEPERS_ADVERTISE" && e.Value != want {
			t.Errorf("it advertises %s, want %s", e.Value, want)
		}
	}
	if names[0] != "KDEDUP_INSTANCE" { // Kubernetes knows only variables that came before
		t.Errorf("the variables are %v", names)
	}
}

// peersOf are those that a policy admits to a port.
func peersOf(r release, policy, port string) []networkingv1.NetworkPolicyPeer {
	for _, n := range find[*networkingv1.NetworkPolicy](r) {
		for _, rule := range n.Spec.Ingress {
			if n.Name == policy && rule.Ports[0].Port.String() == port {
				return rule.From
			}
		}
	}
	return nil
}

func TestOnlyPodsOfTheReleaseAskKeepers(t *testing.T) {
	values := with(t, "keepers", `
podMonitor: {enabled: true}
networkPolicy: {ingressFrom: [{namespaceSelector: {}}], egress: [{ports: [{port: 9092}]}]}
setup: {enabled: true}
`)
	r := mustRender(t, loadChart(t), values)
	lanes, keepers := rolesOf(t, r)
	from := peersOf(r, keepers.owner.GetName(), "keepers")
	if len(from) != 1 || from[0].PodSelector == nil || from[0].NamespaceSelector != nil {
		t.Fatalf("the policy admits %v", from)
	}
	for _, found := range []*metav1.LabelSelector{from[0].PodSelector,
		&find[*monitoringv1.PodMonitor](r)[0].Spec.Selector} {
		selector, err := metav1.LabelSelectorAsSelector(found)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range r.pods() {
			want := p.selector != nil
			if got := selector.Matches(labels.Set(p.template.Labels)); got != want {
				t.Errorf("%v finds %s: %t, want %t", selector, p.owner.GetName(), got, want)
			}
		}
	}
	if got := peersOf(r, lanes.owner.GetName(), "keepers"); got != nil {
		t.Errorf("the lanes are asked by %v", got)
	}
	for _, n := range find[*networkingv1.NetworkPolicy](r) {
		reaches := false
		for _, rule := range n.Spec.Egress {
			for _, to := range rule.To {
				reaches = reaches || labels.SelectorFromSet(to.PodSelector.MatchLabels).Matches(
					labels.Set(keepers.template.Labels))
			}
		}
		if !reaches {
			t.Errorf("%s does not let its pods connect to the keepers", n.Name)
		}
	}
}

func TestKeepersThatCannotWorkAreRefused(t *testing.T) {
	for values, want := range map[string]string{
		"keepers: {secret: \"\"}":        "keepers.secret must name a Secret",
		"keepers: {replicas: 1}":         "keepers.replicas must be at least keepers.copies, 2, got 1",
		"config: {store: {type: redis}}": "keepers need a claim log",
		"config: {store: {keepers: {keep: shared}}}": "config.store.keepers.keep must not be set " +
			"with keepers.enabled",
		"config: {store: {keepers: {tls: {cert_file: /a}}}}": "keepers.secret must be empty",
		"extraEnv: [{name: KDEDUP_STORE_KEEPERS_KEEP, value: all}]": "extraEnv must not hold " +
			"KDEDUP_STORE_KEEPERS_KEEP",
	} {
		_, err := render(loadChart(t), "kdedup", with(t, "keepers", values))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", values, err, want)
		}
	}
}
