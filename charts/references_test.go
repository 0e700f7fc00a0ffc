package charts

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	kedav1alpha1 "github.com/kedacore/keda/v2/apis/keda/v1alpha1"
	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"
)

// references are the objects that a pod cannot start without, as "kind name".
func references(p pods) []string {
	spec, found := p.template.Spec, []string{}
	add := func(kind, name string) { found = append(found, kind+" "+name) }
	if spec.ServiceAccountName != "" {
		add("ServiceAccount", spec.ServiceAccountName)
	}
	for _, s := range spec.ImagePullSecrets {
		add("Secret", s.Name)
	}
	for _, v := range spec.Volumes {
		switch {
		case v.Secret != nil:
			add("Secret", v.Secret.SecretName)
		case v.ConfigMap != nil:
			add("ConfigMap", v.ConfigMap.Name)
		case v.PersistentVolumeClaim != nil:
			add("PersistentVolumeClaim", v.PersistentVolumeClaim.ClaimName)
		}
	}
	for _, c := range slices.Concat(spec.InitContainers, spec.Containers) {
		environmentReferences(c, add)
	}
	return found
}

func environmentReferences(c corev1.Container, add func(kind, name string)) {
	for _, s := range c.EnvFrom {
		if s.SecretRef != nil {
			add("Secret", s.SecretRef.Name)
		} else {
			add("ConfigMap", s.ConfigMapRef.Name)
		}
	}
	for _, e := range c.Env {
		if e.ValueFrom == nil {
			continue
		}
		if s := e.ValueFrom.SecretKeyRef; s != nil {
			add("Secret", s.Name)
		}
		if m := e.ValueFrom.ConfigMapKeyRef; m != nil {
			add("ConfigMap", m.Name)
		}
	}
}

// operatorReferences are those of the operators' objects.
func operatorReferences(r release) []string {
	var found []string
	for _, s := range find[*kedav1alpha1.ScaledObject](r) {
		for _, trigger := range s.Spec.Triggers {
			if trigger.AuthenticationRef != nil {
				found = append(found, "TriggerAuthentication "+trigger.AuthenticationRef.Name)
			}
		}
	}
	for _, m := range find[*monitoringv1.PodMonitor](r) {
		for _, e := range m.Spec.PodMetricsEndpoints {
			if e.BasicAuth != nil {
				found = append(found, "Secret "+e.BasicAuth.Username.Name,
					"Secret "+e.BasicAuth.Password.Name)
			}
		}
	}
	return found
}

func kindOf(o metav1.Object) string { return reflect.TypeOf(o).Elem().Name() }

func isHook(o metav1.Object) bool { return o.GetAnnotations()["helm.sh/hook"] != "" }

func TestWhatIsReferencedExists(t *testing.T) {
	eachShape(t, func(t *testing.T, s shape, r release) {
		ours, atSetup := map[string]bool{}, map[string]bool{}
		for _, o := range r.objects {
			ours[kindOf(o)+" "+o.GetName()] = true
			atSetup[kindOf(o)+" "+o.GetName()] = isHook(o)
		}
		used := operatorReferences(r)
		for _, p := range r.pods() {
			there := ours
			if kindOf(p.owner) == "Job" && isHook(p.owner) {
				there = atSetup // it runs before the release's own objects are made
			}
			for _, reference := range references(p) {
				if !there[reference] && !slices.Contains(s.external, reference) {
					t.Errorf("%s needs %s, which is neither made nor declared", p.owner.GetName(),
						reference)
				}
				used = append(used, reference)
			}
		}
		for _, external := range s.external {
			if !slices.Contains(used, external) {
				t.Errorf("%s is declared and nothing needs it", external)
			}
		}
	})
}

func TestMountsHaveVolumes(t *testing.T) {
	eachShape(t, func(t *testing.T, _ shape, r release) {
		for _, p := range r.pods() {
			there := map[string]bool{}
			for _, v := range p.template.Spec.Volumes {
				there[v.Name] = true
			}
			for _, c := range p.claims {
				there[c.Name] = true
			}
			for _, m := range p.template.Spec.Containers[0].VolumeMounts {
				if !there[m.Name] {
					t.Errorf("%s mounts %s, which is no volume", p.owner.GetName(), m.Name)
				}
			}
		}
	})
}

// selectors are those that must find the pods of the workload and no others.
func selectors(r release, of pods) map[string]map[string]string {
	found := map[string]map[string]string{"the workload": of.selector}
	for _, s := range find[*corev1.Service](r) {
		if s.Name == of.owner.GetName() {
			found["Service"] = s.Spec.Selector
		}
	}
	for _, b := range find[*policyv1.PodDisruptionBudget](r) {
		if b.Name == of.owner.GetName() {
			found["PodDisruptionBudget"] = b.Spec.Selector.MatchLabels
		}
	}
	for _, n := range find[*networkingv1.NetworkPolicy](r) {
		if n.Name == of.owner.GetName() {
			found["NetworkPolicy"] = n.Spec.PodSelector.MatchLabels
		}
	}
	for _, m := range find[*monitoringv1.PodMonitor](r) {
		found["PodMonitor"] = m.Spec.Selector.MatchLabels
	}
	return found
}

func TestSelectorsFindTheWorkloadsPodsAndNoOthers(t *testing.T) {
	eachShape(t, func(t *testing.T, _ shape, r release) {
		for _, one := range r.pods() {
			if one.selector == nil {
				continue
			}
			for of, selector := range selectors(r, one) {
				for _, p := range r.pods() {
					matches := labels.SelectorFromSet(selector).Matches(
						labels.Set(p.template.Labels))
					want := p.owner.GetName() == one.owner.GetName() && p.selector != nil
					if len(selector) == 0 || matches != want {
						t.Errorf("%s: %v finds %s: %t, want %t", of, selector, p.owner.GetName(),
							matches, want)
					}
				}
			}
		}
	})
}

func TestTheTestsPodMayConnect(t *testing.T) {
	r := mustRender(t, loadChart(t), valuesOf(t, "everything"))
	from := find[*networkingv1.NetworkPolicy](r)[0].Spec.Ingress[0].From[0].PodSelector.MatchLabels
	pod := find[*corev1.Pod](r)[0]
	if !labels.SelectorFromSet(from).Matches(labels.Set(pod.Labels)) {
		t.Errorf("the policy lets %v in, the pod has %v", from, pod.Labels)
	}
	service := find[*corev1.Service](r)[0]
	if want := fmt.Sprintf(
		"http://%s:%d/readyz", service.Name, service.Spec.Ports[0].Port,
	); pod.Spec.Containers[0].Args[1] != want {
		t.Errorf("the test asks %s, want %s", pod.Spec.Containers[0].Args[1], want)
	}
}

func TestNamesOfPortsAndTargetsExist(t *testing.T) {
	eachShape(t, func(t *testing.T, _ shape, r release) {
		p := workload(t, r)
		port := p.template.Spec.Containers[0].Ports[0]
		service := find[*corev1.Service](r)[0]
		if got := service.Spec.Ports[0]; got.TargetPort.String() != port.Name ||
			got.Port != port.ContainerPort {
			t.Errorf("the Service's port is %+v, that of the pods %+v", got, port)
		}
		for _, s := range find[*appsv1.StatefulSet](r) {
			if s.Spec.ServiceName != service.Name ||
				service.Spec.ClusterIP != corev1.ClusterIPNone {
				t.Errorf("the Service of the pods' names is %s; there is %s with %s",
					s.Spec.ServiceName, service.Name, service.Spec.ClusterIP)
			}
		}
		for _, m := range find[*monitoringv1.PodMonitor](r) {
			if got := m.Spec.PodMetricsEndpoints[0].Port; got == nil || *got != port.Name {
				t.Errorf("the PodMonitor asks the port %v", got)
			}
		}
		for _, s := range find[*kedav1alpha1.ScaledObject](r) {
			if target := s.Spec.ScaleTargetRef; target.Kind != kindOf(p.owner) ||
				target.Name != p.owner.GetName() {
				t.Errorf("KEDA scales %s %s", target.Kind, target.Name)
			}
		}
	})
}

// The name of a pod's revision label has 11 more characters than that of its StatefulSet, within
// 63.
func TestLongNamesFit(t *testing.T) {
	long := strings.Repeat("a", 53) // the longest that Helm takes
	for _, s := range shapes {
		r, err := render(loadChart(t), long, valuesOf(t, s.name))
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range r.objects {
			if problems := validation.IsDNS1035Label(o.GetName()); problems != nil {
				t.Errorf("%s: %s: %v", s.name, o.GetName(), problems)
			}
			for key, value := range o.GetLabels() {
				if problems := validation.IsValidLabelValue(value); problems != nil {
					t.Errorf("%s: label %s=%s: %v", s.name, key, value, problems)
				}
			}
		}
		if name := workload(t, r).owner.GetName(); len(name)+len("-5d5f7c8b9d") > 63 {
			t.Errorf("%s has %d characters", name, len(name))
		}
	}
}
