package charts

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// pods is what one object makes.
type pods struct {
	owner    metav1.Object
	template corev1.PodTemplateSpec
	selector map[string]string // empty where the owner does not select its pods
	claims   []corev1.PersistentVolumeClaim
}

// podsOf returns the pods of one object, or none.
func podsOf(o metav1.Object) (pods, bool) {
	switch o := o.(type) {
	case *appsv1.StatefulSet:
		return pods{o, o.Spec.Template, o.Spec.Selector.MatchLabels, o.Spec.VolumeClaimTemplates},
			true
	case *appsv1.Deployment:
		return pods{o, o.Spec.Template, o.Spec.Selector.MatchLabels, nil}, true
	case *batchv1.Job:
		return pods{o, o.Spec.Template, nil, nil}, true
	case *corev1.Pod:
		return pods{o, corev1.PodTemplateSpec{ObjectMeta: o.ObjectMeta, Spec: o.Spec}, nil, nil},
			true
	default:
		return pods{}, false
	}
}

func (r release) pods() []pods {
	var all []pods
	for _, o := range r.objects {
		if p, ok := podsOf(o); ok {
			all = append(all, p)
		}
	}
	return all
}

// workload is the StatefulSet or the Deployment.
func workload(t *testing.T, r release) pods {
	t.Helper()
	for _, p := range r.pods() {
		if p.selector != nil {
			return p
		}
	}
	t.Fatal("neither a StatefulSet nor a Deployment")
	return pods{}
}

func TestPodsHaveNoRights(t *testing.T) {
	eachShape(t, func(t *testing.T, _ shape, r release) {
		for _, p := range r.pods() {
			spec, name := p.template.Spec, p.owner.GetName()
			if spec.AutomountServiceAccountToken == nil || *spec.AutomountServiceAccountToken {
				t.Errorf("%s gets a token for the Kubernetes API", name)
			}
			if c := spec.SecurityContext; c == nil || c.RunAsNonRoot == nil || !*c.RunAsNonRoot ||
				c.SeccompProfile == nil ||
				c.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault {
				t.Errorf("%s: security context %+v", name, c)
			}
			for _, c := range spec.Containers {
				if !isConfined(c.SecurityContext) {
					t.Errorf("%s, container %s: security context %+v", name, c.Name,
						c.SecurityContext)
				}
			}
		}
	})
}

// isConfined reports what the restricted Pod Security Standard wants of a container, and a root
// file system that cannot be written to.
func isConfined(c *corev1.SecurityContext) bool {
	return c != nil && c.AllowPrivilegeEscalation != nil && !*c.AllowPrivilegeEscalation &&
		c.ReadOnlyRootFilesystem != nil && *c.ReadOnlyRootFilesystem &&
		c.Capabilities != nil && len(c.Capabilities.Add) == 0 &&
		len(c.Capabilities.Drop) == 1 && c.Capabilities.Drop[0] == "ALL"
}

func TestProbesAskThePortThatIsOpen(t *testing.T) {
	paths := map[string]func(corev1.Container) *corev1.Probe{
		"/healthz": func(c corev1.Container) *corev1.Probe { return c.LivenessProbe },
		"/readyz":  func(c corev1.Container) *corev1.Probe { return c.ReadinessProbe },
	}
	eachShape(t, func(t *testing.T, s shape, r release) {
		c := workload(t, r).template.Spec.Containers[0]
		scheme := corev1.URISchemeHTTP
		if loaded := loadConfig(t, s, r, workload(t, r)); loaded.Server.TLS.CertFile != "" {
			scheme = corev1.URISchemeHTTPS
		}
		for path, of := range paths {
			get := of(c).HTTPGet
			if get.Path != path || get.Port.String() != c.Ports[0].Name || get.Scheme != scheme {
				t.Errorf("got %+v, want %s of the port %s by %s", get, path, c.Ports[0].Name,
					scheme)
			}
		}
		if diff := cmp.Diff(c.LivenessProbe.HTTPGet, c.StartupProbe.HTTPGet); diff != "" {
			t.Errorf("the startup probe asks otherwise than the liveness probe (-liveness "+
				"+startup):\n%s", diff)
		}
	})
}

func TestTheInstanceIsThePodsName(t *testing.T) {
	eachShape(t, func(t *testing.T, _ shape, r release) {
		env := workload(t, r).template.Spec.Containers[0].Env
		i := slices.IndexFunc(env, func(e corev1.EnvVar) bool {
			return e.Name == "KDEDUP_INSTANCE"
		})
		if i < 0 || env[i].ValueFrom.FieldRef.FieldPath != "metadata.name" {
			t.Errorf("got %+v", env)
		}
	})
}

func TestTheSelfTestOfTheSetupCanBeLeftOut(t *testing.T) {
	for values, want := range map[string][]string{
		"setup: {enabled: true}": {"setup", "-c", "/etc/kdedup/kdedup.yaml"},
		"setup: {enabled: true, selfTest: false}": {"setup", "-c", "/etc/kdedup/kdedup.yaml",
			"--skip-self-test"},
	} {
		r, err := render(loadChart(t), "kdedup", with(t, "default", values))
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, p := range r.pods() {
			if kindOf(p.owner) == "Job" {
				got = p.template.Spec.Containers[0].Args
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s:\n%s", values, diff)
		}
	}
}

// A quota of the namespace refuses pods without limits, those of the setup and the test too.
func TestEveryPodHasAMemoryLimit(t *testing.T) {
	eachShape(t, func(t *testing.T, _ shape, r release) {
		for _, p := range r.pods() {
			if limit := p.template.Spec.Containers[0].Resources.Limits.Memory(); limit.IsZero() {
				t.Errorf("%s has none", p.owner.GetName())
			}
		}
	})
}

func TestFurtherContainersStandBesideKdedup(t *testing.T) {
	r := mustRender(t, loadChart(t), valuesOf(t, "everything"))
	c := workload(t, r).template.Spec.Containers
	if len(c) != 2 || c[0].Name != "kdedup" || c[1].Name != "agent" {
		t.Errorf("got %+v", c)
	}
	refusal{"default", "extraContainers: [{name: kdedup}]", "at '/extraContainers/0/name'"}.check(t)
}

func TestInitContainersAndHooksAreTakenAsTheyAre(t *testing.T) {
	for _, shape := range []string{"StatefulSet", "Deployment"} {
		r := mustRender(t, loadChart(t), with(t, "default", "{kind: "+shape+
			", config: {store: {type: kafka}}, "+
			"initContainers: [{name: wait, image: busybox, command: [sleep, '1']}], "+
			"lifecycle: {preStop: {sleep: {seconds: 5}}}}"))
		spec := workload(t, r).template.Spec
		if len(spec.InitContainers) != 1 || spec.InitContainers[0].Image != "busybox" {
			t.Errorf("%s: init containers: %+v", shape, spec.InitContainers)
		}
		if hooks := spec.Containers[0].Lifecycle; hooks == nil || hooks.PreStop.Sleep.Seconds != 5 {
			t.Errorf("%s: hooks: %+v", shape, hooks)
		}
	}
	refusal{"default", "initContainers: [{name: kdedup}]", "at '/initContainers/0/name'"}.check(t)
	refusal{"default", "lifecycle: {beforeStop: {}}", "at '/lifecycle'"}.check(t)
}

func TestExtraObjectsAreOfTheRelease(t *testing.T) {
	r := mustRender(t, loadChart(t), with(t, "default", "extraObjects: [{apiVersion: v1, "+
		"kind: ConfigMap, metadata: {name: '{{ .Release.Name }}-extra'}, data: {a: b}}, "+
		"{apiVersion: v1, "+
		"kind: ConfigMap, metadata: {name: other}}]"))
	var got []string
	for _, m := range find[*corev1.ConfigMap](r) {
		if m.Name == "other" || m.Data["a"] == "b" {
			got = append(got, m.Name)
		}
	}
	if want := []string{"shop-extra", "other"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	refusal{"default", "extraObjects: [{kind: ConfigMap}]", "at '/extraObjects/0'"}.check(t)
}

// Labels for everybody reach everything but what selects.
func TestCommonLabelsAreOnEveryObject(t *testing.T) {
	r := mustRender(t, loadChart(t), valuesOf(t, "everything"))
	for _, o := range r.objects {
		if o.GetLabels()["cost-center"] != "42" {
			t.Errorf("%s %s has %v", kindOf(o), o.GetName(), o.GetLabels())
		}
	}
	for _, p := range r.pods() {
		if p.template.Labels["cost-center"] != "42" || p.selector["cost-center"] != "" {
			t.Errorf("the pods of %s have %v and are selected by %v", p.owner.GetName(),
				p.template.Labels, p.selector)
		}
		if c := p.template.Labels["app.kubernetes.io/component"]; c == "must-not-win" || c == "" {
			t.Errorf("the pods of %s are the component %q", p.owner.GetName(), c)
		}
	}
}

func TestLabelsOfThePodsWinOverCommonOnes(t *testing.T) {
	r := mustRender(t, loadChart(t), with(t, "default", "{setup: {enabled: true}, "+
		"commonLabels: {team: all}, podLabels: {team: orders}}"))
	for _, p := range r.pods() {
		want := "all" // podLabels are for kdedup, not for its setup and test
		if p.selector != nil {
			want = "orders"
		}
		if got := p.template.Labels["team"]; got != want {
			t.Errorf("the pods of %s have the team %q, want %q", p.owner.GetName(), got, want)
		}
		if got := p.owner.GetLabels()["team"]; got != "all" {
			t.Errorf("%s has the team %q", p.owner.GetName(), got)
		}
	}
}
